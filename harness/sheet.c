#include "sheet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "format.h"

static char **copy_cells(const struct csv_in *in, char **to, size_t at)
{
    to = must_grow(to, at + (size_t)in->n, sizeof *to);
    memcpy(to + at, in->cell, (size_t)in->n * sizeof *to);
    return to;
}

static int column_of(const struct sheet *s, const char *name)
{
    int c = 0;
    while (c < s->columns && strcmp(s->name[c], name)) c++;
    return c < s->columns ? c : -1;
}

/* NULL, or the cell of the last line that is no number. */
static const char *no_number(const struct sheet *s, const char *const *reals)
{
    for (; *reals; reals++) {
        double value;
        int c = column_of(s, *reals);
        const char *cell = c < 0 ? "" : s->cell[(size_t)(s->n - 1) * (size_t)s->columns + (size_t)c];
        if (cell_real(cell, &value)) return cell;
    }
    return NULL;
}

static void add_line(struct sheet *s)
{
    s->cell = copy_cells(&s->in, s->cell, (size_t)s->n * (size_t)s->columns);
    s->at = must_grow(s->at, (size_t)s->n + 1, sizeof *s->at);
    s->at[s->n++] = s->in.line;
}

/* NULL, or why it is no such CSV; ret_cell: of which cell, or NULL. */
static const char *read_lines(struct sheet *s, const char *const *needs, const char *const *reals, const char **ret_cell)
{
    const char *why = NULL;
    int more = csv_next(&s->in, &why);
    *ret_cell = NULL;
    if (more <= 0) return s->in.line = 1, why ? why : "no header, or one cut short";
    s->columns = s->in.n;
    s->name = copy_cells(&s->in, NULL, 0);
    for (; *needs; needs++)
        if (column_of(s, *needs) < 0) return *ret_cell = *needs, "no such column: not a file of kbench profile";
    while ((more = csv_next(&s->in, &why)) > 0) {
        if (s->in.n == 1 && !s->in.cell[0][0]) continue;   /* a blank line */
        if (s->in.n != s->columns) return "another number of cells than the header has";
        add_line(s);
        if ((*ret_cell = no_number(s, reals))) return "not a number";
    }
    if (more < 0) return why;
    s->in.line = s->in.lines + 1;
    return s->in.at < s->in.size ? "cut short within this line" : NULL;
}

int sheet_read(const char *path, const char *const *needs, const char *const *reals, struct sheet *ret, char *ret_error,
    size_t size)
{
    const char *cell, *why;
    char tame[48];
    *ret = (struct sheet){0};
    int error = csv_open(&ret->in, path);
    if (error) return text(ret_error, size, "%s: can't be read: %s", path, strerror(error)), error;
    why = read_lines(ret, needs, reals, &cell);
    if (!why) return 0;
    if (cell) text(ret_error, size, "%s:%d: '%.40s': %s", path, ret->in.line, tame_text(cell, tame, sizeof tame), why);
    else text(ret_error, size, "%s:%d: %s", path, ret->in.line, why);
    sheet_free(ret);
    return -1;
}

int sheet_line(const struct sheet *s, int line)
{
    return s->at[line];
}

const char *sheet_text(const struct sheet *s, int line, const char *column)
{
    int c = column_of(s, column);
    return c < 0 ? "" : s->cell[(size_t)line * (size_t)s->columns + (size_t)c];
}

double sheet_real(const struct sheet *s, int line, const char *column)
{
    double ret;
    return cell_real(sheet_text(s, line, column), &ret) ? NAN : ret;
}

void sheet_free(struct sheet *s)
{
    csv_close(&s->in);
    free(s->name), free(s->cell), free(s->at);
    *s = (struct sheet){0};
}
