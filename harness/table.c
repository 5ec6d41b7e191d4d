#include "table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "again.h"
#include "base.h"
#include "csv.h"
#include "registry.h"

void dim_cell(struct csv_out *out, const char *dim, int64_t value)
{
    const char *word = dim_word(dim, value);
    if (word)
        csv_text(out, word);
    else
        csv_whole(out, value);
}

int cell_dim(const char *dim, const char *cell, int64_t *ret)
{
    char why[320];
    if (!cell_whole(cell, ret))
        return 0;
    return !dim_names(dim) || dim_read_word(dim, &cell, ret, why, sizeof(why)) || *cell;
}

int table_write_header(FILE *file, int n_dims, const char *const *dims)
{
    struct csv_out out = {0};
    for (int c = 0; c < n_columns; c++) {
        if (columns[c].kind != COLUMN_DIMS) {
            csv_text(&out, columns[c].name);
            continue;
        }
        for (int d = 0; d < n_dims; d++)
            csv_text(&out, dims[d]);
    }
    csv_end(&out);
    int error = csv_flush(&out, file);
    csv_free(&out);
    return error;
}

static void demand_columns(int n_dims, const char *const *dims, const struct row *row)
{
    for (int i = 0; i < row->n_dims; i++) {
        int d = 0;
        while (d < n_dims && strcmp(dims[d], row->dim[i].name))
            d++;
        if (d == n_dims)
            die(EXIT_BUG, "rows.csv has no column '%s' for a row of %s: the header was made from another plan; please report it",
                row->dim[i].name, row->kernel);
    }
}

int table_write_row(FILE *file, int n_dims, const char *const *dims, const struct row *row)
{
    struct csv_out out = {0};
    demand_columns(n_dims, dims, row);
    for (int c = 0; c < n_columns; c++) {
        const char *cell = (const char *)row + columns[c].offset;
        switch (columns[c].kind) {
        case COLUMN_TEXT:
            csv_text(&out, cell);
            break;
        case COLUMN_WHOLE:
            csv_whole(&out, *(const int64_t *)cell);
            break;
        case COLUMN_REAL:
            csv_real(&out, *(const double *)cell);
            break;
        case COLUMN_DIMS:
            for (int d = 0; d < n_dims; d++)
                dim_cell(&out, dims[d], row_dim(row, dims[d]));
            break;
        }
    }
    csv_end(&out);
    int error = csv_flush(&out, file);
    csv_free(&out);
    return error;
}

/* What each column of a file holds: an index into columns[], a dim as DIM_COLUMN + its number, or OTHER. */
enum { OTHER = -1, DIM_COLUMN = 1000 };

static int column_find(const char *name)
{
    for (int c = 0; c < n_columns; c++) {
        if (columns[c].kind != COLUMN_DIMS && !strcmp(columns[c].name, name))
            return c;
    }
    return OTHER;
}

/* The nearest known column before (step -1) or after (step 1) cell i, or OTHER. */
static int known_beside(const struct csv_in *in, int i, int step)
{
    for (i += step; i >= 0 && i < in->n; i += step) {
        int c = column_find(in->cell[i]);
        if (c != OTHER)
            return c;
    }
    return OTHER;
}

static bool among_dims(const struct csv_in *in, int i)
{
    int dims = 0;
    while (columns[dims].kind != COLUMN_DIMS)
        dims++;
    return known_beside(in, i, -1) == dims - 1 || known_beside(in, i, 1) == dims + 1;
}

/* Fills what[] for the header in `in`. NULL, or why it's not a header of rows.csv. */
static const char *read_header(const struct csv_in *in, struct table *table, int *what)
{
    bool *seen = table->has;
    for (int i = 0; i < in->n; i++) {
        what[i] = column_find(in->cell[i]);
        if (what[i] != OTHER) {
            if (seen[what[i]])
                return "a column stands twice in the header";
            seen[what[i]] = true;
        } else if (among_dims(in, i)) {
            if (table->n_dims == MAX_DIM_COLUMNS || !in->cell[i][0] || strlen(in->cell[i]) >= sizeof(table->dims[0]))
                return "more than 64 dimension columns, or one without a name or with one of more than 23 bytes";
            strcpy(table->dims[table->n_dims], in->cell[i]);
            what[i] = DIM_COLUMN + table->n_dims++;
        }
    }
    if (!seen[column_find("op")] || !seen[column_find("kernel")] || !seen[column_find("status")])
        return "no columns op, kernel and status: not a rows.csv of kbench";
    return NULL;
}

static const char *read_dim(struct row *row, const char *name, const char *cell)
{
    int64_t value;
    if (cell_dim(name, cell, &value))
        return dim_names(name) ? "no value of this dimension in this version" : "not a whole number";
    if (value == INT64_MIN)
        return NULL;
    if (row->n_dims == MAX_DIMS)
        return "more dimensions in one row than an op may have";
    strcpy(row->dim[row->n_dims].name, name);
    row->dim[row->n_dims++].value = value;
    return NULL;
}

/* What an error or a rate may be and a time may not: without bound, as csv_real writes it. */
static bool read_endless(const struct column *column, const char *cell, double *to)
{
    bool less = *cell == '-';
    if (!strcmp(column->unit, "ns") || strcmp(cell + less, "inf"))
        return false;
    *to = less ? -INFINITY : INFINITY;
    return true;
}

/* NULL, or why the cell can't be what the column holds. */
static const char *read_cell(struct row *row, const struct column *column, const char *cell)
{
    char *to = (char *)row + column->offset;
    switch (column->kind) {
    case COLUMN_TEXT:
        if (strlen(cell) >= column->size)
            return "longer than this column may be";
        strcpy(to, cell);
        return NULL;
    case COLUMN_WHOLE:
        return cell_whole(cell, (int64_t *)to) ? "not a whole number" : NULL;
    case COLUMN_REAL:
        return cell_real(cell, (double *)to) && !read_endless(column, cell, (double *)to) ? "not a number" : NULL;
    default:
        return NULL;
    }
}

static struct row *add_row(struct table *table)
{
    if ((table->n & (table->n - 1)) == 0)
        table->row = must_grow(table->row, table->n ? 2 * (size_t)table->n : 1, sizeof(table->row[0]));
    row_clear(&table->row[table->n]);
    return &table->row[table->n++];
}

static int refuse(const char *path, const struct csv_in *in, const char *cell, const char *why, char *ret_error, size_t size)
{
    if (cell)
        text(ret_error, size, "%s:%d: '%.40s': %s", path, in->line, cell, why);
    else
        text(ret_error, size, "%s:%d: %s", path, in->line, why);
    return -1;
}

static int read_rows(const char *path, struct csv_in *in, struct table *table, int n, const int *what,
    char *ret_error, size_t size)
{
    const char *why = NULL;
    int more;
    while ((more = csv_next(in, &why)) > 0) {
        if (in->n == 1 && !in->cell[0][0])
            continue;  /* a blank line */
        if (in->n != n)
            return refuse(path, in, NULL, "another number of cells than the header has", ret_error, size);
        struct row *row = add_row(table);
        for (int i = 0; i < n; i++) {
            if (what[i] >= DIM_COLUMN)
                why = read_dim(row, table->dims[what[i] - DIM_COLUMN], in->cell[i]);
            else if (what[i] != OTHER)
                why = read_cell(row, &columns[what[i]], in->cell[i]);
            if (why)
                return refuse(path, in, in->cell[i], why, ret_error, size);
        }
    }
    if (more < 0)
        return refuse(path, in, NULL, why, ret_error, size);
    /* A kill cuts one row. More than that behind the last whole line is a quote that was never closed, and would hide rows. */
    if (in->size - in->at > 4 * sizeof(struct row)) {
        in->line = in->lines + 1;
        return refuse(path, in, NULL, "a quote is opened here and never closed", ret_error, size);
    }
    table->bytes = in->at;
    table->torn = in->size > in->at ? in->lines + 1 : 0;
    return 0;
}

int table_read(const char *path, struct table *ret, char *ret_error, size_t size)
{
    struct csv_in in;
    struct table table = {0};
    const char *why = NULL;
    int error = csv_open(&in, path);
    if (error) {
        text(ret_error, size, "%s: can't be read: %s", path, strerror(error));
        return error;
    }
    int more = csv_next(&in, &why);
    if (more <= 0) {
        in.line = 1;
        error = refuse(path, &in, NULL, why ? why : "empty: not a rows.csv of kbench", ret_error, size);
    } else {
        int n = in.n, *what = must_alloc((size_t)n, sizeof(what[0]));
        why = read_header(&in, &table, what);
        error = why ? refuse(path, &in, NULL, why, ret_error, size) : read_rows(path, &in, &table, n, what, ret_error, size);
        free(what);
    }
    csv_close(&in);
    if (error)
        table_free(&table);
    else
        table.again = again_settle(&table, 0), *ret = table;
    return error;
}

bool table_has(const struct table *table, const char *name)
{
    for (int d = 0; d < table->n_dims; d++) {
        if (!strcmp(table->dims[d], name))
            return true;
    }
    int c = column_find(name);
    return c != OTHER && table->has[c];
}

void table_free(struct table *table)
{
    free(table->row);
    *table = (struct table){0};
}
