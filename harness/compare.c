#include "compare.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "dtype.h"
#include "registry.h"

static double load_at(const struct problem *problem, int t, const char *row, int64_t i)
{
    const struct tensor *tensor = &problem->op->tensor[t];
    return tensor->dtype == BYTES ? problem->op->load(problem, t, row, i) : dtype_load(tensor->dtype, row, i);
}

static bool is_poison(const char *row, int64_t i, int bytes, int poison)
{
    for (int b = 0; b < bytes; b++)
        if ((uint8_t)row[i * bytes + b] != poison) return false;
    return true;
}

struct row_error {
    int64_t column;
    double  excess, err_rel;
    bool    nan;
};

/* What the best of all results is still away from ref, since its format holds no number nearer. In bf16 that is up to 2^-8 of an
 * element: of one that is 6 times its row's rms, all that the element's bound would leave. */
static double half_ulp(enum dtype dtype, double ref)
{
    int bits = dtype == BF16 ? 8 : dtype == F16 ? 11 : 0;
    return bits && ref != 0 ? ldexp(1, ilogb(ref) - bits) : 0;
}

/* One row: places of NaN and inf first, then the row's norm, then each element. */
static struct row_error compare_row(const struct problem *problem, int t, const char *got, bool clean, const double *ref, int64_t n)
{
    struct tolerance tolerance = problem->op->tensor[t].tolerance;
    struct row_error ret = {.excess = 0};
    double norm = 0, error = 0, worst = -INFINITY;
    int64_t finite = 0, column = 0;
    for (int64_t i = 0; i < n; i++) {
        if (is_unspecified(ref[i]) && !clean) continue;
        double value = load_at(problem, t, got, i);
        if (is_unspecified(ref[i]) && value == -INFINITY) continue;
        if (is_unspecified(ref[i])) return (struct row_error){.column = i, .excess = INFINITY, .err_rel = INFINITY, .nan = true};
        if (!isfinite(ref[i]) || !isfinite(value)) {
            if (value == ref[i] || (isnan(value) && isnan(ref[i]))) continue;
            return (struct row_error){.column = i, .excess = INFINITY, .err_rel = INFINITY, .nan = true};
        }
        double difference = fabs(value - ref[i]);
        norm += ref[i] * ref[i];
        error += difference * difference;
        finite++;
        double beyond = difference - half_ulp(problem->op->tensor[t].dtype, ref[i]);
        if (!(beyond <= worst)) {
            worst = beyond;
            column = i;
        }
    }
    if (!finite) return ret;
    double rms = sqrt(norm / (double)finite), room = tolerance.rel_l2 * rms + tolerance.abs;
    double by_row = sqrt(error / (double)finite) / room, by_element = worst / (8 * room);
    ret.column = column;
    ret.excess = error == 0 ? 0 : fmax(by_row, by_element);
    ret.err_rel = norm > 0 && tolerance.rel_l2 > 0 ? sqrt(error / norm) : 0;
    return ret;
}

struct worst compare_rows(const struct problem *problem, int t, const void *got, int64_t stride, int poison, bool clean,
                          const double *ref, const uint8_t *checked)
{
    const struct tensor *tensor = &problem->op->tensor[t];
    int bytes = dtype_bytes(tensor->dtype);
    int64_t rows = tensor->rows(problem), n = tensor->row_bytes(problem) / bytes;
    struct worst ret = {.row = -1};
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < rows; r++) {
        if (!checked[r]) continue;
        const char *row = (const char *)got + r * stride;
        struct row_error error = compare_row(problem, t, row, clean, ref + r * n, n);
#pragma omp critical
        {
            ret.rows++;
            ret.failed_rows += !(error.excess <= 1);
            ret.err_rel = fmax(ret.err_rel, error.err_rel);
            if (ret.row < 0 || error.excess > ret.excess || (error.excess == ret.excess && r < ret.row)) {
                ret.row = r;
                ret.column = error.column;
                ret.excess = error.excess;
                ret.nan = error.nan;
            }
        }
    }
    if (ret.row < 0) return ret;
    const char *row = (const char *)got + ret.row * stride;
    ret.got = load_at(problem, t, row, ret.column);
    ret.want = ref[ret.row * n + ret.column];
    if (clean && is_unspecified(ret.want)) ret.want = -INFINITY;
    ret.untouched = !(ret.excess <= 1) && is_poison(row, ret.column, bytes, poison);
    return ret;
}

/* Sizes of the shape's words: a dim's value, a number, or 0 where it is neither. */
static int shape_sizes(const struct problem *problem, const char *shape, int64_t *ret, int most)
{
    int n = 0;
    for (const char *at = shape + (*shape == '['); *at && *at != ']' && n < most;) {
        char word[32];
        size_t length = strcspn(at, ",]");
        text(word, sizeof word, "%.*s", (int)length, at);
        int dim = op_dim(problem->op, word);
        ret[n++] = isdigit((unsigned char)*word) ? atoll(word) : dim >= 0 ? problem->dim[dim] : 0;
        at += length;
        while (*at == ',' || *at == ' ') at++;
    }
    return n;
}

char *element_text(const struct problem *problem, int t, int64_t row, int64_t column, char *ret, size_t size)
{
    const struct tensor *tensor = &problem->op->tensor[t];
    int64_t sizes[8], elements = tensor->row_bytes(problem) / dtype_bytes(tensor->dtype), total = 1;
    int n = shape_sizes(problem, tensor->shape, sizes, COUNT(sizes));
    for (int i = 0; i < n; i++) total *= sizes[i];
    if (!n || total != tensor->rows(problem) * elements)
        return text(ret, size, "%s[row %lld, %lld]", tensor->name, (long long)row, (long long)column);
    int64_t flat = row * elements + column, coordinate[8];
    for (int i = n; i-- > 0; flat /= sizes[i]) coordinate[i] = flat % sizes[i];
    char words[160] = "";
    for (int i = 0; i < n; i++) {
        size_t used = strlen(words);
        text(words + used, sizeof words - used, "%s%lld", i ? ", " : "", (long long)coordinate[i]);
    }
    return text(ret, size, "%s[%s]", tensor->name, words);
}
