/* Parts of `kbench list`: each topic as text and as JSON. */
#ifndef KBENCH_LIST_H
#define KBENCH_LIST_H

#include <cjson/cJSON.h>
#include <stdio.h>
#include "file_columns.h"
#include "machine.h"
#include "registry.h"

/* What the topics draw on. */
struct material {
    const struct registry *registry;
    int                    n_machines;
    const struct machine  *machine;
    const char *const     *why_not;     /* by machine; NULL, or why it can't be had */
    enum csv_file          file;        /* whose columns */
};

void   list_ops(FILE *, const struct material *);
void   list_kernels(FILE *, const struct material *);
void   list_devices(FILE *, const struct material *);
void   list_sweeps(FILE *, const struct material *);
void   list_columns(FILE *, const struct material *);
cJSON *list_ops_json(const struct material *);
cJSON *list_kernels_json(const struct material *);
cJSON *list_devices_json(const struct material *);
cJSON *list_sweeps_json(const struct material *);
cJSON *list_columns_json(const struct material *);

/* Words that text and JSON share. */
const char *list_dtype(enum dtype);
const char *list_role(enum role);
const char *list_engine(enum engine);
char       *list_device(const struct machine *, char *ret, size_t size);      /* "cuda:0" */
char       *list_sweep_note(const char *name, char *ret, size_t size);        /* the comment that a job file begins with */

/* What the assembler settled for each function of each CUDA kernel. */
void   list_static(FILE *);
cJSON *list_static_json(void);

extern const char list_dims_help[];

/* A paragraph from column `margin` on, the first line beginning at `column`, broken at 80. */
void list_wrap(FILE *, int column, int margin, const char *words);

/* Run folders below <source root>/results, newest first: when, on what, how many rows, and which of its kernels have other machine
 * code in this build. Under another toolkit than this build's (by engine, "" unknown) other code says nothing. */
struct toolkits {
    char of[2][48];
};
void   list_results(FILE *, const struct registry *, const struct toolkits *);
cJSON *list_results_json(const struct registry *, const struct toolkits *);

#endif
