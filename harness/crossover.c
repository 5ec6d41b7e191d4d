#include "crossover.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base.h"
#include "csv.h"
#include "figure.h"
#include "file_columns.h"
#include "format.h"
#include "registry.h"
#include "report_parts.h"

static const double TIE = 1.02;

static bool competes(const struct row *row)
{
    return row_status(row) == STATUS_OK && !row_is_probe(row) && row->t_med_ns > 0 && isfinite(row->t_med_ns);
}

static bool ties(const struct row *best, const struct row *row)
{
    return row->t_lo_ns <= best->t_hi_ns || row->t_med_ns <= TIE * best->t_med_ns;
}

/* The fastest row of the kernel that rows[i] is of. */
static const struct row *fastest(const struct row *rows, int n, int i)
{
    const struct row *best = &rows[i];
    for (int k = 0; k < n; k++)
        if (competes(&rows[k]) && !strcmp(rows[k].kernel, rows[i].kernel) && rows[k].t_med_ns < best->t_med_ns) best = &rows[k];
    return best;
}

static int by_time(const void *p, const void *q)
{
    const struct row *a = *(const struct row *const *)p, *b = *(const struct row *const *)q;
    return (a->t_med_ns > b->t_med_ns) - (a->t_med_ns < b->t_med_ns);
}

struct contest contest_of(const struct row *rows, int n)
{
    struct contest ret = {0};
    const struct row **row = must_alloc((size_t)n, sizeof(*row));
    int kernels = 0;
    for (int i = 0; i < n; i++) {
        if (!competes(&rows[i]) || fastest(rows, n, i) != &rows[i]) continue;
        row[kernels++] = &rows[i];
    }
    if (kernels) qsort(row, (size_t)kernels, sizeof(*row), by_time);
    for (int i = 0; i < kernels && kernels >= 2; i++) {
        if (!i) ret.best = row[0];
        if (ties(ret.best, row[i]) && ret.n_ties < MOST_TIES) ret.tie[ret.n_ties++] = row[i];
        else if (!ret.next && !ties(ret.best, row[i])) ret.next = row[i];
    }
    free(row);
    return ret;
}

/* The dimension that maps of the row's op go across: the live context, else the first that varies. NULL: none. */
static const char *across_of(const struct table *table, const struct row *row)
{
    const struct op *op = op_find(row->op);
    if (!dim_varies(table, row->op, "batch")) return NULL;
    if (dim_varies(table, row->op, "ctx")) return "ctx";
    for (int d = 0; d < row->n_dims; d++) {
        int at = op ? op_dim(op, row->dim[d].name) : -1;
        bool label = at >= 0 && op->dim[at].label;
        if (!label && strcmp(row->dim[d].name, "batch") && dim_varies(table, row->op, row->dim[d].name)) return row->dim[d].name;
    }
    return NULL;
}

static bool is_side(const struct map *map, const char *dim)
{
    return !strcmp(dim, map->down) || !strcmp(dim, map->across);
}

static bool belongs(const struct map *map, const struct row *row)
{
    const struct row *like = map->like;
    bool same = !strcmp(row->op, like->op) && !strcmp(row->engine, like->engine) && !strcmp(row->cache, like->cache);
    if (!same || row->seed != like->seed || row->n_dims != like->n_dims) return false;
    for (int d = 0; d < row->n_dims; d++)
        if (row->dim[d].value != like->dim[d].value && !is_side(map, row->dim[d].name)) return false;
    return true;
}

/* Puts a value in its place; its index, or -1 where there is no room. */
static int insert(int64_t *values, int *n, int64_t value)
{
    int i = 0;
    while (i < *n && values[i] < value) i++;
    if (i < *n && values[i] == value) return i;
    if (*n == MAP_SIDE) return -1;
    memmove(values + i + 1, values + i, (size_t)(*n - i) * sizeof(*values));
    values[i] = value;
    ++*n;
    return i;
}

static int kernel_number(struct map *map, const struct row *row)
{
    char label[sizeof(map->kernel[0])];
    int  k = 0;
    label_text(row, row, 1, label, sizeof(label));
    while (k < map->n_kernels && strcmp(map->kernel[k], label)) k++;
    if (k == map->n_kernels && k < MAP_KERNELS) strcpy(map->kernel[map->n_kernels++], label);
    return k < MAP_KERNELS ? k : -1;
}

static int index_of(const int64_t *values, int n, int64_t value)
{
    for (int i = 0; i < n; i++)
        if (values[i] == value) return i;
    return -1;
}

static void fill(struct map *map, const struct table *table)
{
    for (int i = 0, end; i < table->n; i = end) {
        end = group_end(table, i);
        if (!belongs(map, &table->row[i]) || !contest_of(&table->row[i], end - i).best) continue;
        insert(map->down_value, &map->n_down, row_dim(&table->row[i], map->down));
        insert(map->across_value, &map->n_across, row_dim(&table->row[i], map->across));
    }
    for (int i = 0, end; i < table->n; i = end) {
        end = group_end(table, i);
        struct contest c = belongs(map, &table->row[i]) ? contest_of(&table->row[i], end - i) : (struct contest){0};
        int y = index_of(map->down_value, map->n_down, row_dim(&table->row[i], map->down));
        int x = index_of(map->across_value, map->n_across, row_dim(&table->row[i], map->across));
        if (!c.best || x < 0 || y < 0) continue;
        struct map_cell *cell = &map->cell[y][x];
        map->n_cells += !cell->there;
        *cell = (struct map_cell){.there = true};
        for (int t = 0; t < c.n_ties; t++) {
            int k = kernel_number(map, c.tie[t]);
            if (k >= 0) cell->kernel[cell->n++] = k;
        }
    }
}

static int fuller_first(const void *p, const void *q)
{
    const struct map *a = p, *b = q;
    if (a->n_cells != b->n_cells) return b->n_cells - a->n_cells;
    return (a->like > b->like) - (a->like < b->like);
}

struct map *maps_find(const struct table *table, int *ret_n)
{
    enum { MOST = 64 };
    struct map *maps = must_alloc(MOST, sizeof(*maps));
    int n = 0, kept = 0;
    for (int i = 0, end; i < table->n && n < MOST; i = end) {
        const struct row *row = &table->row[i];
        const char *across = across_of(table, row);
        bool known = false;
        end = group_end(table, i);
        for (int m = 0; m < n && !known; m++) known = belongs(&maps[m], row);
        if (known || !across || !contest_of(row, end - i).best) continue;
        maps[n] = (struct map){.like = row};
        text(maps[n].down, sizeof(maps[n].down), "batch");
        text(maps[n].across, sizeof(maps[n].across), "%s", across);
        fill(&maps[n++], table);
    }
    qsort(maps, (size_t)n, sizeof(*maps), fuller_first);
    for (int m = 0; m < n; m++) {
        int of_op = 0;
        for (int k = 0; k < kept; k++) of_op += !strcmp(maps[k].like->op, maps[m].like->op);
        if (maps[m].n_down >= 2 && maps[m].n_across >= 2 && maps[m].n_cells >= 3 && of_op < MAPS_SHOWN) maps[kept++] = maps[m];
    }
    *ret_n = kept;
    return maps;
}

char *map_fixed_text(const struct table *table, const struct map *map, char *ret, size_t size)
{
    ret[0] = '\0';
    for (int d = 0; d < map->like->n_dims; d++) {
        const struct row_dim *dim = &map->like->dim[d];
        char value[32];
        size_t n = strlen(ret);
        if (is_side(map, dim->name) || !dim_varies(table, map->like->op, dim->name)) continue;
        text(ret + n, size - n, "%s%s=%s", n ? "," : "", dim->name, dim_text(dim->name, dim->value, value, sizeof(value)));
    }
    return ret;
}

static void put_contest(struct csv_out *out, const struct table *table, const struct contest *c)
{
    char list[MOST_TIES * 66] = "";
    csv_text(out, c->best->op);
    for (int d = 0; d < table->n_dims; d++) dim_cell(out, table->dims[d], row_dim(c->best, table->dims[d]));
    csv_text(out, c->best->engine);
    csv_text(out, c->best->cache);
    csv_whole(out, c->best->seed);
    csv_text(out, c->best->kernel);
    csv_text(out, c->best->tune);
    csv_real(out, c->best->t_med_ns);
    for (int t = 1; t < c->n_ties; t++) {
        size_t n = strlen(list);
        text(list + n, sizeof(list) - n, "%s%s", n ? ";" : "", c->tie[t]->kernel);
    }
    csv_text(out, list);
    csv_text(out, c->next ? c->next->kernel : "");
    csv_real(out, c->next ? c->next->t_med_ns / c->best->t_med_ns : NAN);
    csv_end(out);
}

char *crossover_csv(const struct table *table)
{
    struct csv_out out = {0};
    file_header_of(&out, CSV_crossover, table);
    for (int i = 0, end; i < table->n; i = end) {
        end = group_end(table, i);
        struct contest c = contest_of(&table->row[i], end - i);
        if (c.best) put_contest(&out, table, &c);
    }
    return out.text;
}
