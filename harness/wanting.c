#include "wanting.h"

#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "jobfile.h"
#include "registry.h"
#include "sweep.h"
#include "words.h"

bool row_wanting(const struct row *row)
{
    return !strcmp(row->status, ROW_WANTING);
}

/* In a plan everything else is a dimension. */
static bool is_setting(const char *name)
{
    return !strcmp(name, "variant") || !strcmp(name, "cache") || !strcmp(name, "seed") || word_is_global_key(name);
}

static int demand_columns(const struct table *table, const char *path, bool planned, struct trouble *trouble)
{
    static const char *const columns[] = {"engine", "marks", "tune", "cache", "t_med_ns", "t_lo_ns", "t_hi_ns", "seed"};
    struct place head = {path, 1};
    for (int i = 0; i < COUNT(columns); i++)
        if (!table_has(table, columns[i]))
            return fail(trouble, head, "no column %s: without it different rows look alike, or bad ones good; take the whole file",
                columns[i]);
    for (int i = 0; i < table->n && !planned; i++) {   /* a plan says it better: of the version that made the run */
        const struct op *op = op_find(table->row[i].op);
        for (int d = 0; op && d < op_dims(op); d++)
            if (row_dim(&table->row[i], op->dim[d].name) == INT64_MIN)
                return fail(trouble, head, "%s %s, a dimension of op %s: different problems look alike; take the whole file",
                    table_has(table, op->dim[d].name) ? "a row has no" : "no column", op->dim[d].name, op->name);
    }
    return 0;
}

static int take_dims(const struct table *table, const struct job_section *section, struct row *row, struct trouble *trouble)
{
    for (int i = 0; i < section->n; i++) {
        const struct job_key *key = &section->key[i];
        struct place at = {key->file, key->line};
        const char  *p = key->value;
        char         why[320];
        int64_t      value;
        if (is_setting(key->name)) continue;
        if (!table_has(table, key->name))
            return fail(trouble, at, "%.40s: rows.csv has no such column: different problems look alike; take the whole file",
                key->name);
        if (row->n_dims == MAX_DIMS || axis_value(key->name, &p, &value, why, sizeof why) || *p)
            return fail(trouble, at, "%.40s = %.40s: not one value of a dimension; take the plan.ini of this run", key->name,
                key->value);
        text(row->dim[row->n_dims].name, sizeof row->dim[0].name, "%s", key->name);
        row->dim[row->n_dims++].value = value;
    }
    return 0;
}

/* "attn/splitk splits=2,path=1" */
static void take_variant(const struct job_key *key, struct row *row)
{
    size_t n = strcspn(key->value, " ");
    text(row->kernel, sizeof row->kernel, "%.*s", (int)n, key->value);
    text(row->tune, sizeof row->tune, "%s", key->value + n + strspn(key->value + n, " "));
    for (char *c = row->tune; *c; c++) *c = *c == ',' ? ';' : *c;
}

/* What competes is of one op, which a plug-in's name does not say: that of the first kernel with rows. */
static void take_op(const struct table *table, const struct job_section *of, struct row *row)
{
    for (int i = 0; i < of->n && !*row->op; i++) {
        if (strcmp(of->key[i].name, "variant")) continue;
        take_variant(&of->key[i], row);
        for (int k = 0; k < table->n && !*row->op; k++)
            if (!strcmp(table->row[k].kernel, row->kernel)) text(row->op, sizeof row->op, "%s", table->row[k].op);
    }
}

/* In the order of the columns, as rows are read: the plan says first what all groups share. */
static void sort_dims(const struct table *table, struct row *row)
{
    struct row_dim dim[MAX_DIMS];
    int            n = 0;
    for (int d = 0; d < table->n_dims; d++) {
        int64_t value = row_dim(row, table->dims[d]);
        if (value == INT64_MIN || n == row->n_dims) continue;
        text(dim[n].name, sizeof dim[n].name, "%s", table->dims[d]);
        dim[n++].value = value;
    }
    memcpy(row->dim, dim, (size_t)n * sizeof *dim);
    row->n_dims = n;
}

/* From where the last one was, for rows stand in the order of the plan. */
static bool has_row(const struct table *table, int n, const struct row *key, int *at)
{
    for (int i = 0; i < n; i++) {
        int k = (*at + i) % n;
        if (row_same_key(&table->row[k], key)) return *at = k, true;
    }
    return false;
}

static void add_row(struct table *table, const struct row *row)
{
    table->row = must_grow(table->row, (size_t)table->n + 1, sizeof *table->row);
    table->row[table->n++] = *row;
}

/* Of the group, else of all groups. */
static const struct job_key *setting(const struct job_section *const *of, const char *name)
{
    const struct job_key *key = job_find(of[1], name);
    return key ? key : job_find(of[0], name);
}

/* One group of the plan; n: rows that were measured. */
static int take_group(struct table *table, int n, const struct job_section *global, const struct job_section *section,
                      struct row *row, int *at, struct trouble *trouble)
{
    const struct job_section *of[] = {global, section};
    const struct job_key     *key;
    TRY(take_dims(table, global, row, trouble));
    TRY(take_dims(table, section, row, trouble));
    sort_dims(table, row);
    take_op(table, global, row), take_op(table, section, row);
    if ((key = setting(of, "cache"))) text(row->cache, sizeof row->cache, "%s", key->value);
    if ((key = setting(of, "seed"))) row->seed = (int64_t)strtoull(key->value, NULL, 10);
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < of[s]->n; i++) {
            if (strcmp(of[s]->key[i].name, "variant")) continue;
            take_variant(&of[s]->key[i], row);
            if (!has_row(table, n, row, at)) add_row(table, row);
        }
    return 0;
}

static int take_plan(struct table *table, const struct jobfile *plan, const char *repeat, struct trouble *trouble)
{
    int n = table->n, at = 0;
    for (int g = 0; g < plan->n; g++) {
        struct row row;
        row_clear(&row);
        strcpy(row.status, ROW_WANTING), strcpy(row.cache, "cold");
        if (n) strcpy(row.engine, table->row[0].engine);
        text(row.repeat, sizeof row.repeat, "%s", repeat);
        TRY(take_group(table, n, &plan->global, &plan->section[g], &row, &at, trouble));
    }
    return 0;
}

int wanting_find(struct table *table, const char *path, const char *plan_path, const char *repeat, char *ret_error, size_t size)
{
    struct trouble trouble = {{0}};
    struct jobfile plan = {0};
    int            error = demand_columns(table, path, plan_path, &trouble);
    if (!error && !plan_path && table->torn)
        error = fail(&trouble, (struct place){path, table->torn}, "the last line is cut short, and no plan.ini beside it says "
            "what is missing; take the whole file, or the run's folder");
    if (!error && plan_path && jobfile_read(plan_path, &plan, ret_error, size)) return jobfile_free(&plan), 1;
    if (!error) error = take_plan(table, &plan, repeat, &trouble);
    if (error) text(ret_error, size, "%s", trouble.text);
    jobfile_free(&plan);
    return error;
}
