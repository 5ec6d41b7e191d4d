/* scaling.csv: a line a series; the dimension along which it goes has an empty cell of its own. */
#include <math.h>
#include <string.h>
#include "base.h"
#include "csv.h"
#include "file_columns.h"
#include "scaling.h"

static void put_series(struct csv_out *out, const struct table *table, const struct scaling *s)
{
    const struct row *row = s->last;
    const double times[] = {s->first->t_med_ns, row->t_med_ns, s->ratio, s->ratio_lo, s->ratio_hi, s->fit.exponent, s->fit.lo,
        isfinite(s->fit.hi) ? s->fit.hi : NAN, s->fit.t0, s->fit.a, s->declared, s->ideal};
    csv_text(out, row->op);
    csv_text(out, row->kernel);
    csv_text(out, row->engine);
    for (int d = 0; d < table->n_dims; d++)
        dim_cell(out, table->dims[d], strcmp(table->dims[d], s->dim) ? row_dim(row, table->dims[d]) : INT64_MIN);
    csv_text(out, row->tune);
    csv_text(out, row->cache);
    csv_whole(out, row->seed);
    csv_text(out, s->dim);
    csv_text(out, s->unit);
    csv_whole(out, s->points);
    csv_whole(out, s->from);
    csv_whole(out, s->to);
    for (int i = 0; i < COUNT(times); i++) {
        if (i == 8) csv_text(out, s->fit.hinge ? "max" : "sum");
        csv_real(out, times[i]);
    }
    csv_text(out, scaling_word[s->verdict]);
    csv_text(out, s->repeat);
    csv_end(out);
}

char *scalings_csv(const struct scalings *s, const struct table *table)
{
    struct csv_out out = {0};
    file_header_of(&out, CSV_scaling, table);
    for (int i = 0; i < s->n; i++) put_series(&out, table, &s->of[i]);
    return out.text;
}
