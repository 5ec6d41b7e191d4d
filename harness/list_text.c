/* The topics of `kbench list` for people. */
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "list.h"
#include "row.h"
#include "sweep_files.h"

enum { WIDTH = 80 };

const char list_dims_help[] = "one column for each dimension of the run's ops, under its own name";

void list_wrap(FILE *f, int column, int margin, const char *words)
{
    if (column >= margin) fputc('\n', f), column = 0;
    column += fprintf(f, "%*s", margin - column, "");
    for (bool begin = true; *words; begin = false) {
        words += strspn(words, " ");
        int n = (int)strcspn(words, " ");
        if (!begin && column + 1 + n > WIDTH) fprintf(f, "\n%*s", margin, ""), column = margin, begin = true;
        column += fprintf(f, "%s%.*s", begin ? "" : " ", n, words);
        words += n;
    }
    fputc('\n', f);
}

const char *list_dtype(enum dtype dtype)
{
    static const char *const names[] = {"f32", "f16", "bf16", "e4m3", "i32", "i64", "bytes"};
    return names[dtype];
}

const char *list_role(enum role role)
{
    static const char *const names[] = {"in", "weight", "out", "inout"};
    return names[role];
}

const char *list_engine(enum engine engine)
{
    return engine == CUDA ? "cuda" : "host";
}

char *list_device(const struct machine *m, char *ret, size_t size)
{
    return m->engine == CUDA ? text(ret, size, "cuda:%d", (int)m->ordinal) : text(ret, size, "host");
}

char *list_sweep_note(const char *name, char *ret, size_t size)
{
    char  path[4096], line[512];
    FILE *file = fopen(text(path, sizeof path, "%s/sweeps/%s.ini", source_root(), name), "r");
    *ret = 0;
    while (file && fgets(line, sizeof line, file) && *line == '#') {
        size_t n = strlen(ret);
        line[strcspn(line, "\n")] = 0;
        text(ret + n, size - n, "%s%s", n ? " " : "", line + 1 + strspn(line + 1, " "));
    }
    if (file) fclose(file);
    return ret;
}

void list_ops(FILE *f, const struct material *m)
{
    (void)m;
    for (int i = 0; ops[i]; i++) {
        list_wrap(f, fprintf(f, "%s", ops[i]->name), 20, ops[i]->note ? ops[i]->note : "");
        for (int d = 0; d < op_dims(ops[i]); d++) {
            const struct dim *dim = &ops[i]->dim[d];
            char words[320], choices[160], dflt[24], lo[24], hi[24];
            dim_text(dim->name, dim->dflt, dflt, sizeof dflt);
            if (dim->names)
                text(words, sizeof words, "%s, a choice of %s", dflt, dim_choices(dim->name, choices, sizeof choices));
            else if (dim->label) text(words, sizeof words, "%s, a choice of %s", dflt, dim->unit ? dim->unit : "");
            else
                text(words, sizeof words, "%s, from %s to %s %s%s", dflt, value_text(dim->min, lo, sizeof lo),
                    value_text(dim->max, hi, sizeof hi), dim->unit ? dim->unit : "",
                    dim->live ? "; known on the device only" : "");
            list_wrap(f, fprintf(f, "  %s", dim->name), 20, words);
        }
        for (int t = 0; t < op_tensors(ops[i]); t++) {
            const struct tensor *tensor = &ops[i]->tensor[t];
            char words[160];
            text(words, sizeof words, "%s %s %s", list_role(tensor->role), list_dtype(tensor->dtype),
                tensor->shape ? tensor->shape : "");
            list_wrap(f, fprintf(f, "  %s", tensor->name), 20, words);
        }
    }
}

/* "splits 1..64, default 4" */
static char *tunable_text(const struct tunable *t, char *ret, size_t size)
{
    return text(ret, size, "-t %s=%d (%d to %d)", t->name, (int)t->value[0], (int)t->min, (int)t->max);
}

static const char *promise_text(const struct kernel *k)
{
    return k->promises & PROBE    ? " probe: the op's loads alone, never ranked;"
           : k->promises & ORACLE ? " reference of large problems, for the check;"
                                  : "";
}

void list_kernels(FILE *f, const struct material *m)
{
    for (int i = 0; i < m->registry->n; i++) {
        const struct entry  *e = &m->registry->entry[i];
        const struct op     *op = op_find(e->kernel->op);
        char growth[64], words[400], built[96] = "";
        if (e->sms && *e->sms) text(built, sizeof built, " sm %s", e->sms);
        kernel_growth_text(op, e->kernel, growth, sizeof growth);
        text(words, sizeof words, "%s%s:%s %s", list_engine(e->kernel->engine), built, promise_text(e->kernel),
            e->kernel->note ? e->kernel->note : "");
        list_wrap(f, fprintf(f, "%s%s%s", e->name, *growth ? " " : "", growth), 24, words);
        for (int t = 0; t < kernel_tunables(e->kernel); t++)
            list_wrap(f, 0, 24, tunable_text(&e->kernel->tunable[t], words, sizeof words));
    }
}

void list_devices(FILE *f, const struct material *m)
{
    for (int i = 0; i < m->n_machines; i++) {
        const struct machine *machine = &m->machine[i];
        char word[32], words[512];
        list_device(machine, word, sizeof word);
        if (m->why_not && m->why_not[i]) text(words, sizeof words, "not usable: %s", m->why_not[i]);
        else
            text(words, sizeof words, "%s, %.0f GB%s%s", machine->name, (double)machine->facts.memory_bytes / 1e9,
                *machine->features ? ", " : "", machine->features);
        list_wrap(f, fprintf(f, "%s", word), 10, words);
    }
}

void list_sweeps(FILE *f, const struct material *m)
{
    char **names, note[1024];
    int    n = sweep_names(&names);
    (void)m;
    for (int i = 0; i < n; i++) {
        list_sweep_note(names[i], note, sizeof note);
        list_wrap(f, fprintf(f, "%s", names[i]), 16, note);
        free(names[i]);
    }
    free(names);
}

/* Other files that `list columns` can explain. */
static char *other_files(enum csv_file file, char *ret, size_t size)
{
    size_t n = strlen(text(ret, size, "Also:"));
    for (int other = 0; other < CSV_FILES; other++)
        if (other != (int)file) n += strlen(text(ret + n, size - n, " %s.csv", file_columns_of(other).file));
    return ret;
}

void list_columns(FILE *f, const struct material *m)
{
    struct file_columns columns = file_columns_of(m->file);
    char words[500];
    list_wrap(f, fprintf(f, "%s.csv:", columns.file), 16, columns.help);
    for (int i = 0; i < columns.n; i++) {
        const struct file_column *c = &columns.column[i];
        if (c->kind == FILE_DIMS) {
            list_wrap(f, fprintf(f, "<dimensions>"), 16, list_dims_help);
            continue;
        }
        text(words, sizeof words, "%s%s%s%s", *c->unit ? "[" : "", c->unit, *c->unit ? "] " : "", c->help);
        list_wrap(f, fprintf(f, "%s", c->name), 16, words);
    }
    list_wrap(f, 0, 0, other_files(m->file, words, sizeof words));
}
