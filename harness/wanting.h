/* What a run lacks: rows that its plan has, the rest of a line that was cut, columns without which rows look alike. */
#ifndef KBENCH_WANTING_H
#define KBENCH_WANTING_H

#include "table.h"

/* The status of a row that is planned and was not measured. No other program writes it; who does not know it takes it as failed. */
#define ROW_WANTING "wanting"

bool row_wanting(const struct row *);

/* Rows of the plan at plan_path (a plan.ini) that the table lacks are added to its end as ROW_WANTING; `repeat`: the line that
 * measures them. path: of the rows, for messages. plan_path: NULL where there is none. 0, or non-zero with "file:line: what: why;
 * what to do" in ret_error where nobody can know which rows are there: a column is missing, the plan can't be read, or a line is
 * cut short and no plan says what follows. */
int wanting_find(struct table *, const char *path, const char *plan_path, const char *repeat, char *ret_error, size_t size);

#endif
