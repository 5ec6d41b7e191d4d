/* `precision`: what bf16 and fp8 keys of the indexer cost, on made data. precision.h says which. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base.h"
#include "commands.h"
#include "csv.h"
#include "file_columns.h"
#include "format.h"
#include "precision.h"
#include "runfolder.h"
#include "sweep.h"

enum { BATCH, CTX, TOP_K, AXES };

/* The axes of this command, as a problem's dims: default list and bounds. */
static const struct {
    const char *name, *dflt;
    int64_t     min, max;
} axes[AXES] = {{"batch", "batch=8", 1, 4096}, {"ctx", "ctx=8K,32K,128K", PRECISION_RATIO, 1 << 20}, {"k", "k=512", 1, 8192}};

static struct axis parse(const char *word)
{
    struct axis axis;
    char error[200];
    if (axis_parse(word, &axis, error, sizeof error)) die(EXIT_USAGE, "%s", error);
    return axis;
}

static void read_axes(const struct cli *cli, struct axis ret[AXES])
{
    for (int a = 0; a < AXES; a++) ret[a] = parse(axes[a].dflt);
    for (int i = 0; i < cli->axes.n; i++) {
        struct axis axis = parse(cli->axes.word[i]);
        int a = 0;
        while (a < AXES && strcmp(axes[a].name, axis.name)) a++;
        if (a == AXES) die(EXIT_USAGE, "-a %s: precision has no such dimension; it has batch, ctx and k", cli->axes.word[i]);
        for (int v = 0; v < axis.n; v++)
            if (axis.value[v] < axes[a].min || axis.value[v] > axes[a].max)
                die(EXIT_USAGE, "-a %s: %s must be from %lld to %lld, got %lld", cli->axes.word[i], axes[a].name,
                    (long long)axes[a].min, (long long)axes[a].max, (long long)axis.value[v]);
        axis_free(&ret[a]);
        ret[a] = axis;
    }
}

/* --out, or results/runs/<UTC>-precision as other runs; made where it is missing. */
static const char *open_folder(const struct cli *cli, char *ret, size_t size)
{
    char   parent[500], stamp[40], file[600];
    time_t now = time(NULL);
    strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", gmtime(&now));
    text(parent, sizeof parent, "%.400s/results/runs", source_root());
    if (!cli->out && mkdir(parent, 0777) && errno != EEXIST) text(parent, sizeof parent, ".");
    if (cli->out) text(ret, size, "%s", cli->out);
    else text(ret, size, "%s/%s-precision", parent, stamp);
    if (mkdir(ret, 0777) && errno != EEXIST)
        die(EXIT_ENVIRONMENT, "%s: can't be made: %s; name another folder by --out", ret, strerror(errno));
    if (!access(text(file, sizeof file, "%.500s/precision.csv", ret), F_OK) && !cli->force)
        die(EXIT_USAGE, "%s: exists; add --force to overwrite it, or name another folder by --out", file);
    return ret;
}

static void csv_row(struct csv_out *csv, const struct precision_problem *p, int format, const struct precision_result *r)
{
    const int64_t whole[] = {p->batch, p->ctx, p->k, (int64_t)p->seed};
    csv_text(csv, precision_model_name[p->model]);
    csv_text(csv, precision_format_name[format]);
    for (int i = 0; i < COUNT(whole); i++) csv_whole(csv, whole[i]);
    csv_real(csv, r->score_err);
    csv_real(csv, r->recall_mean);
    csv_real(csv, r->recall_worst);
    csv_whole(csv, r->worst_request);
    csv_real(csv, r->out_mean);
    csv_real(csv, r->out_worst);
    csv_end(csv);
}

static void table_rows(const struct precision_problem *p, const struct precision_result *result)
{
    printf("\n%s: batch=%lld, ctx=%lld, the best %lld of %lld\n", precision_model_name[p->model], (long long)p->batch,
        (long long)p->ctx, (long long)p->k, (long long)(p->ctx / PRECISION_RATIO));
    printf("  %-18s %11s %12s %9s %15s %8s\n", "", "score error", "recall: mean", "worst", "attention: mean", "worst");
    for (int f = 0; f < FORMATS; f++) {
        char score[32], mean[32], worst[32];
        printf("  %-18s %11s %10.2f %% %7.2f %% %15s %8s\n", precision_format_name[f],
            error_text(result[f].score_err, score, sizeof score), 100 * result[f].recall_mean, 100 * result[f].recall_worst,
            error_text(result[f].out_mean, mean, sizeof mean), error_text(result[f].out_worst, worst, sizeof worst));
    }
    fflush(stdout);
}

static void run_all(const struct cli *cli, const struct axis *axis, struct csv_out *csv)
{
    for (int m = 0; m < MODELS; m++)
        for (int i = 0; i < axis[BATCH].n * axis[CTX].n * axis[TOP_K].n; i++) {
            struct precision_result  result[FORMATS];
            struct precision_problem p = {
                (enum precision_model)m, axis[BATCH].value[i / axis[TOP_K].n / axis[CTX].n],
                axis[CTX].value[i / axis[TOP_K].n % axis[CTX].n], axis[TOP_K].value[i % axis[TOP_K].n], cli->seed,
            };
            precision_run(&p, result);
            table_rows(&p, result);
            for (int f = 0; f < FORMATS; f++) csv_row(csv, &p, f, &result[f]);
        }
}

int command_precision(struct cli *cli)
{
    struct axis    axis[AXES];
    struct csv_out csv = {0};
    char           folder[600];
    read_axes(cli, axis);
    open_folder(cli, folder, sizeof folder);
    printf("The indexer's keys in bf16 and fp8 against fp32, on made data: recall of the\n"
           "selected entries by score, and how far attention's output moves (relative L2).\n"
           "noise: nothing stands out, the worst case. text: some entries are relevant.\n"
           "Real keys may differ; harness/precision.h says what is assumed.\n");
    file_header(&csv, CSV_precision, 0, NULL);
    run_all(cli, axis, &csv);
    int error = runfolder_write(folder, "precision.csv", csv.text);
    if (error)
        die(EXIT_ENVIRONMENT, "%s/precision.csv: can't be written: %s; name another folder by --out", folder, strerror(error));
    printf("\nrows: %s/precision.csv\n", folder);
    csv_free(&csv);
    for (int a = 0; a < AXES; a++) axis_free(&axis[a]);
    return EXIT_OK;
}
