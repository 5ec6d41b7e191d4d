#include "file_columns.h"

#include <string.h>

#include "base.h"

/* Of rows.csv's columns, which other files have as keys. */
#define TEXT(name, bytes, unit, help) static const char unit_##name[] = unit, help_##name[] = help;
#define WHOLE(name, unit, help)       TEXT(name, , unit, help)
#define REAL(name, unit, help)        TEXT(name, , unit, help)
#define DIMS
#include "columns.def"
#undef TEXT
#undef WHOLE
#undef REAL
#undef DIMS

/* Files one after the other, each begun by a line of its own. */
static const struct file_column lines[] = {
#define CSV_FILE(name, help)          {FILE_BEGIN, #name, NULL, help},
#define KEY(name)                     {FILE_COLUMN, #name, unit_##name, help_##name},
#define COLUMN(name, unit, help)      {FILE_COLUMN, #name, unit, help},
#define DIMS                          {FILE_DIMS, NULL, NULL, NULL},
#define TEXT(name, bytes, unit, help) KEY(name)
#define WHOLE(name, unit, help)       KEY(name)
#define REAL(name, unit, help)        KEY(name)
    CSV_FILE(rows, "the result: a line for each kernel on each problem")
#include "columns.def"
#include "file_columns.def"
};

struct file_columns file_columns_of(enum csv_file file)
{
    struct file_columns ret = {0};
    int files = 0;
    for (int i = 0; i < COUNT(lines); i++) {
        files += lines[i].kind == FILE_BEGIN;
        if (files != (int)file + 1) continue;
        if (lines[i].kind != FILE_BEGIN) ret.n++;
        else ret = (struct file_columns){.file = lines[i].name, .help = lines[i].help, .column = &lines[i + 1]};
    }
    return ret;
}

enum csv_file file_named(const char *word)
{
    const char *slash = strrchr(word, '/');
    const char *name = slash ? slash + 1 : word;
    size_t n = strlen(name);
    int file = 0;
    if (n > 4 && !strcmp(name + n - 4, ".csv")) n -= 4;
    while (file < CSV_FILES && (strncmp(file_columns_of(file).file, name, n) || file_columns_of(file).file[n])) file++;
    return file;
}

int file_cells(enum csv_file file, int n_dims)
{
    struct file_columns columns = file_columns_of(file);
    int n = columns.n;
    for (int i = 0; i < columns.n; i++)
        if (columns.column[i].kind == FILE_DIMS) n += n_dims - 1;
    return n;
}

const char *file_cell(enum csv_file file, int n_dims, const char *const *dims, int i)
{
    struct file_columns columns = file_columns_of(file);
    for (int c = 0; c < columns.n; c++) {
        int n = columns.column[c].kind == FILE_DIMS ? n_dims : 1;
        if (i < n) return columns.column[c].kind == FILE_DIMS ? dims[i] : columns.column[c].name;
        i -= n;
    }
    return "";
}

void file_header(struct csv_out *out, enum csv_file file, int n_dims, const char *const *dims)
{
    int n = file_cells(file, n_dims);
    for (int i = 0; i < n; i++) csv_text(out, file_cell(file, n_dims, dims, i));
    csv_end(out);
}

static int dims_of(const struct table *table, const char *ret[MAX_DIM_COLUMNS])
{
    for (int d = 0; d < table->n_dims; d++) ret[d] = table->dims[d];
    return table->n_dims;
}

void file_header_of(struct csv_out *out, enum csv_file file, const struct table *table)
{
    const char *dims[MAX_DIM_COLUMNS];
    file_header(out, file, dims_of(table, dims), dims);
}

bool file_header_is(const struct csv_in *in, enum csv_file file, const struct table *table)
{
    const char *dims[MAX_DIM_COLUMNS];
    bool same = in->n == file_cells(file, dims_of(table, dims));
    for (int i = 0; i < in->n && same; i++) same = !strcmp(in->cell[i], file_cell(file, table->n_dims, dims, i));
    return same;
}
