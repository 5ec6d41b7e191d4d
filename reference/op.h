/* An operator: what is computed, on what data, at what cost. Knows no GPU and no kernel.
 *
 * Compiled as C17 (-Wpedantic) and, through kernels/kernel.h, by nvcc as C++20: designated initialisers in declared order.
 * A new operator is one file in reference/ that defines one `const struct op`, one header with its enums, and one line in
 * reference/meson.build. See CONTRIBUTING.md.
 */
#ifndef KBENCH_OP_H
#define KBENCH_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Counts up when struct op or struct kernel changes in a way that an older plug-in can't survive. */
enum { KBENCH_ABI = 3 };

enum { MAX_DIMS = 16, MAX_TENSORS = 24, MAX_TUNABLES = 4 };

/* See op.verify. */
enum { UNREACHED_BYTE = 0x80 };

/* Input sets from this number on are for checks alone: what live dims say must differ in them from all other sets, be it by
 * shorter lengths, so that a kernel which remembers lengths of an earlier call is found out. */
#define CHECK_SET 0x80000000u

enum dtype { F32, F16, BF16, E4M3, I32, I64, BYTES };

/* INOUT: a cache or ring, written at slots that inputs name. WEIGHT: the same in every step. */
enum role { IN, WEIGHT, OUT, INOUT };

struct problem;

struct dim {
    const char *name, *unit;  /* "ctx", "tokens" */
    int64_t     dflt, min, max;
    bool        live;         /* its value stands in device data only: a kernel's unfit, workspace, open and launch see `max`
                                 instead, so that no kernel can size a grid by it */
    double      ideal;        /* exponent of the best known growth of time in it: 0 flat, 1 linear */
    bool        label;        /* a choice, not a size (ragged=0|1): no growth is fitted, no axis is drawn */
    const char *const *names; /* of a label with words for its values, ended by NULL: value i is names[i], min is 0, max the last.
                                 A word is at most 23 of a-z0-9_-, a letter first. Ops that share the name of such a dim share
                                 its words, too. NULL: numbers */
};

/* What a reference writes where the op leaves an element of a float output open: the check skips it, or wants -inf there of a
 * kernel that promises CLEAN. A NaN of its own bits, so that an honest NaN is no loophole. */
static const uint64_t UNSPECIFIED_BITS = 0x7ff8756e73706563u;

static inline double unspecified(void)
{
    double ret;
    memcpy(&ret, &UNSPECIFIED_BITS, sizeof ret);
    return ret;
}

static inline bool is_unspecified(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits == UNSPECIFIED_BITS;
}

/* A row of got passes against ref when ||got - ref|| <= rel_l2 * ||ref|| + abs * sqrt(n), n elements in the row, and each of
 * its elements when |got - ref| <= 8 * (rel_l2 * rms(ref) + abs) + half a unit in the last place of a bf16 or f16 ref, which the
 * best of results may be off. NaN and inf must stand where the reference has them; elements with unspecified() in ref don't
 * count. */
struct tolerance {
    double rel_l2, abs;
};

struct tensor {
    const char      *name, *shape;  /* shape for people: "[batch, heads, 512]" */
    enum dtype       dtype;         /* BYTES: a packed layout, described in the op's header; a row is a piece of it, always dense */
    enum role        role;
    struct tolerance tolerance;     /* OUT and INOUT: see above */
    int64_t (*rows)(const struct problem *);
    int64_t (*row_bytes)(const struct problem *);

    /* Sparse tensors (caches): which rows the other inputs of this set refer to. Writes ascending, distinct row numbers to
     * `ret_rows` (room for touched(p, t, NULL) of them) and returns their count; with NULL an upper bound of it, without
     * looking at t. Rows that are not touched hold NaN bytes (0xFF) everywhere, so that a kernel that reads one is found out.
     * NULL: every row is touched. t: the tensors of the set in host memory, those without `touched` filled. */
    int64_t (*touched)(const struct problem *, void *const *t, int64_t *ret_rows);

    /* How many consecutive input sets (share*i .. share*i + share-1) may live in one copy of this tensor because they touch
     * different rows of it; fill gives the same bytes for all of them. NULL: 1. */
    int64_t (*share)(const struct problem *);
};

/* All functions are pure: same arguments, same result, any thread. `t` holds host pointers by tensor index, rows dense at
 * row_bytes. Input set `set` (0, 1, 2, ...) is one independent instance of all inputs of a problem. */
struct op {
    uint32_t      abi, size;                  /* KBENCH_ABI, sizeof(struct op) */
    const char   *name, *note;                /* note: one line for people */
    struct dim    dim[MAX_DIMS];              /* the first unnamed one ends the list */
    struct tensor tensor[MAX_TENSORS];        /* likewise */

    /* NULL, or why these dims make no problem ("topk must be a multiple of 8, got 9"). dims are within min and max. */
    const char *(*invalid)(const struct problem *);

    /* Writes rows [row, row + rows) of tensor t of input set `set` to host. INOUT: what it holds before the call. OUT: never. */
    void (*fill)(const struct problem *, int t, uint32_t set, int64_t row, int64_t rows, void *host);

    /* The expected outputs, in double precision, for work items [item, item + n) of items(p). The pointers of OUT and INOUT
     * tensors lead to reference buffers: double for every floating dtype, the tensor's own type for I32, I64 and BYTES.
     * unspecified() where any value will do. */
    int64_t (*items)(const struct problem *);
    void (*reference)(const struct problem *, void *const *t, int64_t item, int64_t n);

    /* Which rows of output tensor t item `item` writes: [*ret_row, *ret_row + *ret_rows). */
    void (*item_rows)(const struct problem *, int t, int64_t item, int64_t *ret_row, int64_t *ret_rows);

    /* One element of a BYTES tensor; i counts elements from the start of buf. NULL: no BYTES tensors. */
    double (*load)(const struct problem *, int t, const void *buf, int64_t i);

    /* Instead of elementwise comparison (top-k as sets): NULL, or what is wrong, into a buffer of `size` bytes at ret_why. got: the
     * inputs of the set and the kernel's outputs, ref: the reference's outputs, by tensor index with rows dense. Rows of an integer
     * output that the reference had no time for hold UNREACHED_BYTE in ref and are not to be judged. */
    const char *(*verify)(const struct problem *, void *const *got, void *const *ref, char *ret_why, size_t size);

    /* Work of one call by the actual lengths in t: floating-point operations, and the fewest bytes that must move between
     * memory and chip: every touched row of the tensors in `reads` once (bit t), every output once. */
    double (*flop)(const struct problem *, void *const *t);
    double (*bytes)(const struct problem *, void *const *t, uint64_t reads);
};

struct problem {
    const struct op *op;
    int64_t          dim[MAX_DIMS];  /* in the order of op->dim */
    uint64_t         seed;
};

#ifdef __cplusplus
extern "C" {
#endif

/* Generated by reference/meson.build; NULL-terminated. */
extern const struct op *const ops[];

#ifdef __cplusplus
}
#endif

#endif
