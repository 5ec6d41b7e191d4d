#include "sheet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

static char **copy_cells(const struct csv_in *in, char **to, size_t at)
{
    to = must_grow(to, at + (size_t)in->n, sizeof *to);
    memcpy(to + at, in->cell, (size_t)in->n * sizeof *to);
    return to;
}

int sheet_read(const char *path, struct sheet *ret)
{
    const char *why;
    *ret = (struct sheet){0};
    int error = csv_open(&ret->in, path);
    if (error) return error;
    if (csv_next(&ret->in, &why) <= 0) {
        csv_close(&ret->in);
        return -1;
    }
    ret->columns = ret->in.n;
    ret->name = copy_cells(&ret->in, NULL, 0);
    while (csv_next(&ret->in, &why) > 0 && ret->in.n == ret->columns) {
        ret->cell = copy_cells(&ret->in, ret->cell, (size_t)ret->n * (size_t)ret->columns);
        ret->n++;
    }
    return 0;
}

const char *sheet_text(const struct sheet *s, int line, const char *column)
{
    for (int c = 0; c < s->columns; c++)
        if (!strcmp(s->name[c], column)) return s->cell[(size_t)line * (size_t)s->columns + (size_t)c];
    return "";
}

double sheet_real(const struct sheet *s, int line, const char *column)
{
    double ret;
    return cell_real(sheet_text(s, line, column), &ret) ? NAN : ret;
}

void sheet_free(struct sheet *s)
{
    csv_close(&s->in);
    free(s->name), free(s->cell);
    *s = (struct sheet){0};
}
