/* kbench list: what there is to run, on what, and what was run. */
#include <stdlib.h>
#include <string.h>
#if __has_include(<cuda_runtime_api.h>)   /* on the path of a build with the cuda engine alone */
#include <cuda_runtime_api.h>
#endif

#include "base.h"
#include "commands.h"
#include "format.h"
#include "list.h"
#include "nearest.h"
#include "sweep_files.h"

/* What this program was built with, in the words of env.json; no device is needed to know. */
static struct toolkits built_with(void)
{
    struct toolkits t = {{[HOST] = "gcc " __VERSION__}};
#ifdef CUDART_VERSION
    text(t.of[CUDA], sizeof t.of[CUDA], "%d.%d", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
#endif
    return t;
}

static void results(FILE *f, const struct material *m)
{
    struct toolkits t = built_with();
    list_results(f, m->registry, &t);
}

static void facts(FILE *f, const struct material *m)
{
    (void)m;
    list_static(f);
}

static cJSON *facts_json(const struct material *m)
{
    (void)m;
    return list_static_json();
}

static cJSON *results_json(const struct material *m)
{
    struct toolkits t = built_with();
    return list_results_json(m->registry, &t);
}

struct topic {
    const char *name;
    void      (*print)(FILE *, const struct material *);
    cJSON    *(*json)(const struct material *);
};

/* In place of "kernels" under --static. */
static const struct topic static_topic = {"static", facts, facts_json};

/* Without a topic the first four follow each other. */
static const struct topic topics[] = {
    {"ops", list_ops, list_ops_json}, {"kernels", list_kernels, list_kernels_json}, {"devices", list_devices, list_devices_json},
    {"sweeps", list_sweeps, list_sweeps_json}, {"columns", list_columns, list_columns_json}, {"results", results, results_json},
};
enum { OVERVIEW = 4 };

/* A word of the command line as an error quotes it: on one line, the begin of a long one. */
static char *quoted(const char *word, char *ret, size_t size)
{
    tame_text(word, ret, size);
    if (strlen(ret) == size - 1) text(ret + size - 4, 4, "...");
    return ret;
}

static int topic_index(const char *word)
{
    const char *names[COUNT(topics)];
    char        hint[96], quote[60];
    for (int i = 0; i < COUNT(topics); i++) {
        names[i] = topics[i].name;
        if (!strcmp(word, names[i])) return i;
    }
    die(EXIT_USAGE, "list %s: no such topic; ops, kernels, devices, sweeps, columns and results are%s",
        quoted(word, quote, sizeof quote), did_you_mean(word, names, COUNT(topics), hint, sizeof hint));
}

/* Known by its name alone, whether it is there or not. */
static enum csv_file file_index(const char *word)
{
    const char   *names[CSV_FILES];
    const char   *slash = strrchr(word, '/'), *last = slash ? slash + 1 : word;
    char          hint[96], quote[60], kinds[200] = "", stem[40];
    enum csv_file file = file_named(word);
    for (int i = 0; i < CSV_FILES; i++) {
        size_t n = strlen(kinds);
        names[i] = file_columns_of(i).file;
        text(kinds + n, sizeof kinds - n, "%s%s.csv", !i ? "" : i < CSV_FILES - 1 ? ", " : " and ", names[i]);
    }
    text(stem, sizeof stem, "%.*s", (int)strcspn(last, "."), last);
    if (file == CSV_FILES)
        die(EXIT_USAGE, "list columns %s: not a kind of file that a run leaves; %s are%s", quoted(word, quote, sizeof quote),
            kinds, did_you_mean(stem, names, COUNT(names), hint, sizeof hint));
    return file;
}

int command_list(const struct cli *cli, const struct registry *registry, int n_machines, const struct machine *machine,
                 const char *const *why_not)
{
    struct material m = {registry, n_machines, machine, why_not, CSV_rows};
    int             first = cli->args.n ? topic_index(cli->args.word[0]) : 0, n = cli->args.n ? 1 : OVERVIEW;
    bool            of_file = cli->args.n == 2 && topics[first].print == list_columns;
    if (of_file) m.file = file_index(cli->args.word[1]);
    char            quote[60];
    if (cli->args.n > 1 && !of_file)
        die(EXIT_USAGE, "list %s %s: one topic at a time", topics[first].name, quoted(cli->args.word[1], quote, sizeof quote));
    const struct topic *topic = cli->static_facts ? &static_topic : topics + first;
    if (cli->static_facts && (n > 1 || strcmp(topics[first].name, "kernels")))
        die(EXIT_USAGE, "list --static: tells of kernels alone; list kernels --static");
    if (cli->json) {
        cJSON *all = cJSON_CreateObject();
        for (int i = 0; i < n; i++) cJSON_AddItemToObject(all, topic[i].name, topic[i].json(&m));
        char *words = cJSON_Print(all);
        if (!words) die(EXIT_ENVIRONMENT, "out of host memory for the list");
        puts(words);
        free(words);
        cJSON_Delete(all);
        return EXIT_OK;
    }
    for (int i = 0; i < n; i++) {
        if (n > 1) printf("%s%s\n\n", i ? "\n" : "", topic[i].name);
        topic[i].print(stdout, &m);
    }
    return EXIT_OK;
}
