#include "samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base.h"
#include "csv.h"
#include "file_columns.h"

int samples_write_header(FILE *file, int n_dims, const char *const *dims)
{
    struct csv_out out = {0};
    file_header(&out, CSV_samples, n_dims, dims);
    int error = csv_flush(&out, file);
    csv_free(&out);
    return error;
}

static void whole_or_empty(struct csv_out *out, int32_t value)
{
    csv_whole(out, value < 0 ? INT64_MIN : value);
}

static void weather_cells(struct csv_out *out, const struct weather *weather)
{
    csv_real(out, weather->memory_clock_MHz);
    csv_real(out, weather->power_W);
    csv_real(out, weather->temperature_C);
    whole_or_empty(out, weather->held);
    whole_or_empty(out, weather->others);
    csv_real(out, weather->waited_pct);
    csv_real(out, weather->stolen_pct);
    csv_real(out, weather->load);
}

int samples_write(FILE *file, int n_dims, const char *const *dims, const struct row *row, int n, const struct sample *sample)
{
    struct csv_out out = {0};
    if (n <= 0)
        return 0;
    for (int i = 0; i < n; i++) {
        csv_text(&out, row->op);
        csv_text(&out, row->kernel);
        for (int d = 0; d < n_dims; d++)
            dim_cell(&out, dims[d], row_dim(row, dims[d]));
        csv_text(&out, row->tune);
        csv_text(&out, row->cache);
        csv_whole(&out, row->seed);
        csv_whole(&out, sample[i].placement);
        csv_whole(&out, sample[i].round);
        csv_whole(&out, sample[i].position);
        csv_real(&out, sample[i].t_ns);
        csv_real(&out, sample[i].at_s);
        csv_real(&out, sample[i].sm_clock_MHz);
        csv_whole(&out, sample[i].calls);
        csv_real(&out, sample[i].canary_ns);
        csv_real(&out, sample[i].wait_ns);
        weather_cells(&out, &sample[i].weather);
        csv_end(&out);
    }
    int error = csv_flush(&out, file);
    csv_free(&out);
    return error;
}

/* Whether the record in `in`, under a header of `done`'s dims, belongs to a row of `done`. */
static bool belongs(const struct csv_in *in, enum csv_file file, const struct table *done)
{
    struct row key;
    char *const *cell = in->cell;
    row_clear(&key);
    text(key.op, sizeof(key.op), "%s", *cell++);
    text(key.kernel, sizeof(key.kernel), "%s", *cell++);
    if (file != CSV_samples)
        text(key.engine, sizeof(key.engine), "%s", *cell++);
    for (int d = 0; d < done->n_dims; d++, cell++) {
        if (**cell && key.n_dims < MAX_DIMS && !cell_dim(done->dims[d], *cell, &key.dim[key.n_dims].value))
            strcpy(key.dim[key.n_dims++].name, done->dims[d]);
    }
    text(key.tune, sizeof(key.tune), "%s", *cell++);
    text(key.cache, sizeof(key.cache), "%s", *cell++);
    if (cell_whole(*cell, &key.seed))
        return false;
    for (int i = done->n - 1; i >= 0; i--) {
        if (row_same_key(&done->row[i], &key))
            return true;
    }
    return false;
}

static int keep(struct csv_in *in, enum csv_file file, const struct table *done, struct csv_out *out, const char **ret_why)
{
    int more, n = file_cells(file, done->n_dims);
    for (bool header = true; (more = csv_next(in, ret_why)) > 0; header = false) {
        if (header ? !file_header_is(in, file, done) : in->n != n)
            return *ret_why = file == CSV_samples ? "not the samples of the rows.csv beside it"
                : "its columns are not those of this version and the rows.csv beside it", -1;
        if (!header && !belongs(in, file, done))
            continue;
        for (int i = 0; i < n; i++)
            csv_text(out, in->cell[i]);
        csv_end(out);
    }
    return more;
}

int lines_keep(const char *path, enum csv_file file, const struct table *done, char *ret_error, size_t size)
{
    struct csv_in in;
    struct csv_out out = {0};
    const char *why = NULL;
    char folder[600];
    int error = csv_open(&in, path);
    if (error) {
        text(ret_error, size, "%s: can't be read: %s", path, strerror(error));
        return error;
    }
    error = keep(&in, file, done, &out, &why);
    if (error) {
        text(ret_error, size, "%s:%d: %s", path, in.line, why);
    } else {
        char *slash = strrchr(text(folder, sizeof(folder), "%s", path), '/');
        if (slash)
            *slash = '\0';
        error = runfolder_write(slash ? folder : ".", slash ? slash + 1 : path, out.n ? out.text : "");
        if (error)
            text(ret_error, size, "%s: can't be written: %s", path, strerror(error));
    }
    csv_free(&out);
    csv_close(&in);
    return error;
}
