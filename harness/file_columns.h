/* The CSV files of a run folder: what their columns are called, for who writes them, and what they mean, for `kbench list columns
 * FILE`. */
#ifndef KBENCH_FILE_COLUMNS_H
#define KBENCH_FILE_COLUMNS_H

#include <stdbool.h>
#include "csv.h"
#include "table.h"

enum csv_file {
#define CSV_FILE(name, help)     CSV_##name,
#define KEY(name)
#define DIMS
#define COLUMN(name, unit, help)
    CSV_FILE(rows, )
#include "file_columns.def"
    CSV_FILES
#undef CSV_FILE
#undef KEY
#undef DIMS
#undef COLUMN
};

enum file_column_kind { FILE_COLUMN, FILE_DIMS, FILE_BEGIN };

/* FILE_DIMS stands for the dimension columns of the run's ops, under their own names: unit and help are NULL. */
struct file_column {
    enum file_column_kind kind;
    const char           *name, *unit, *help;
};

struct file_columns {
    const char               *file, *help;   /* file: "rows" of rows.csv */
    int                       n;
    const struct file_column *column;
};

struct file_columns file_columns_of(enum csv_file);
/* By "counters", "counters.csv" or a path that ends so. CSV_FILES: there is no such file. */
enum csv_file       file_named(const char *word);

/* The cells of its header line: their number, and the i-th. */
int         file_cells(enum csv_file, int n_dims);
const char *file_cell(enum csv_file, int n_dims, const char *const *dims, int i);
void        file_header(struct csv_out *, enum csv_file, int n_dims, const char *const *dims);
void        file_header_of(struct csv_out *, enum csv_file, const struct table *);
bool        file_header_is(const struct csv_in *, enum csv_file, const struct table *);

#endif
