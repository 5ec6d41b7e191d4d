/* Comparing one output with its reference, on the host. Pure functions. */
#ifndef KBENCH_COMPARE_H
#define KBENCH_COMPARE_H

#include "op.h"

struct worst {
    int64_t row, column;     /* of the worst element */
    double  got, want;
    double  excess;          /* error over what is allowed; > 1 fails, NaN or inf where it should not be: inf */
    bool    nan;             /* NaN or inf in a place where the reference has a number, or the other way round */
    bool    untouched;       /* the element still holds the poison */
    int64_t failed_rows, rows;
    double  err_rel;         /* worst relative L2 error of a row with a norm; abs rows don't count */
};

/* got: rows at `stride` bytes with the poison byte that was there before; ref: double, dense; checked[row]: compare this one.
 * Elements that ref leaves unspecified are skipped, or must be -inf where `clean`. */
struct worst compare_rows(const struct problem *, int t, const void *got, int64_t stride, int poison, bool clean, const double *ref,
                          const uint8_t *checked);

/* "out[3, 17, 211]" from the shape's words and the problem's dims; "out[row 209, 211]" where they don't multiply up. */
char *element_text(const struct problem *, int t, int64_t row, int64_t column, char *ret, size_t size);

#endif
