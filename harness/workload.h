/* The data of a row group: input sets on the host with their references, the guarded buffers of the check, the ring of input sets
 * of the timer. Knows ops and devices, no kernels' names and no clock of theirs. */
#ifndef KBENCH_WORKLOAD_H
#define KBENCH_WORKLOAD_H

#include "device.h"
#include "registry.h"

enum {
    CHECK_SETS = 2,         /* input sets with a reference: set 0, and CHECK_SET, which replaces it under a captured graph */
    GUARD_BYTES = 4096,     /* before and after each check buffer */
    GUARD_BYTE = 0xa5,
    POISON_FINITE = 0x7b,   /* 1.3e36 in bf16 and fp32: out of range, but a number */
    POISON_NAN = 0xff,      /* NaN in every float format; what rows that nothing names hold */
    STORE_AT = 4096,        /* in the memory file, behind the board */
    PLACEMENTS = 3,         /* of the ring in device memory */
    PLACEMENT_BYTES = 38 << 20,  /* apart: pages of 2 MB, so that each has other physical ones */
};

/* Device memory that outlives a group: a later one takes it over if it is large enough. */
struct block {
    void  *p;
    size_t bytes;
};

enum { BLOCK_CHECK, BLOCK_RING = MAX_TENSORS, BLOCK_WORKSPACE = 2 * MAX_TENSORS, BLOCK_ZEROED, BLOCK_ORACLE,
    BLOCKS = BLOCK_ORACLE + MAX_TENSORS };

/* Sizes of one tensor of the problem at hand. */
struct shape {
    bool    input, output;      /* INOUT is both */
    int     element_bytes;
    int64_t rows, row_bytes, row_elements;
    int64_t stride;             /* in the ring: dense, up to 16 bytes of slack */
    int64_t check_stride;       /* in the check buffers: another 256 bytes between rows, where rows are 16 bytes or more */
    int64_t share;              /* sets that live in one copy */
};

/* Host side of the input sets that are compared; in the memory file, so that the next worker finds it done. */
struct store_head {
    uint64_t key;               /* of the problem; 0: nothing here */
    uint32_t filled, referenced;
    double   checked_pct, reference_s;
};

struct workload {
    struct dev       *dev;
    const struct op  *op;
    struct problem    problem;  /* real */
    struct problem    seen;     /* by kernels: live dims at their max */
    int               n;        /* tensors */
    struct shape      shape[MAX_TENSORS];
    int               memory;   /* file */
    void             *map;
    size_t            map_bytes;
    struct store_head *head;
    void             *host[CHECK_SETS][MAX_TENSORS];       /* inputs, dense */
    void             *ref[CHECK_SETS][MAX_TENSORS];        /* outputs as op.reference writes them */
    uint8_t          *checked[CHECK_SETS][MAX_TENSORS];    /* outputs: rows that the reference covers */
    struct arg        check[MAX_TENSORS];                  /* the guarded buffers */
    uint64_t          check_hash[MAX_TENSORS];             /* of the inputs as put */
    int               sets;                                /* in the ring */
    double            touched_bytes;                       /* of one set, inputs */
    double            needed_bytes;                        /* the fewest of them that a kernel on the ring needs; 0: all */
    /* op.bytes and op.flop of a call, mean over the ring; reads of all inputs */
    double            bytes, flop;
    struct arg       *ring;                                /* sets x MAX_TENSORS */
    struct block      block[BLOCKS];
    char              error[320];                          /* what failed, for people */
};

/* Sizes, host tensors and references of a problem. oracle: an ORACLE kernel of the op with code for this device, or NULL. budget_s:
 * CPU time for references before the oracle, or a share of the items, has to do; negative: no references. 0, DEV_OOM, or a device
 * error. */
int workload_prepare(struct workload *, const struct problem *, const struct kernel *oracle, double budget_s);
/* Guarded buffers; then puts set `set` into them: inputs as they should be, those that a kernel with `reads` (0: all) does not
 * read NaN, outputs untouched. */
int workload_check_buffers(struct workload *);
int workload_put(struct workload *, int set, uint64_t reads);
int workload_poison_outputs(struct workload *, int byte);
/* Whether guards are whole, and inputs still what was put. On damage: 1 and words in ret_why; negative or positive errors as usual
 * are not told apart from damage by sign, so they come in *ret_error. */
bool workload_guards_ok(struct workload *, int *ret_error, char *ret_why, size_t size);
bool workload_inputs_ok(struct workload *, int *ret_error, char *ret_why, size_t size);
/* Fills the ring: at least bytes of touched inputs, or one set where bytes is 0. Other placements (0 .. PLACEMENTS - 1) put the
 * same sets to other addresses. */
int workload_ring(struct workload *, double bytes, int placement);

int  workload_block(struct workload *, int which, size_t bytes, void **ret);   /* grow-only */
void workload_release(struct workload *);                                      /* host side of a group; keeps blocks */
void workload_close(struct workload *);

/* Before workload_ring, for each kernel that will run on it: which tensors it reads (0: all). The ring is as long as the one that
 * needs the fewest bytes asks for. */
void workload_needs(struct workload *, uint64_t reads);
/* How many sets that are: so many that their needed bytes add up to `bytes`, within limits of memory; 0 bytes: one. */
int  workload_sets(const struct workload *, double bytes);

/* Largest number of bytes that a group with this problem takes on the device, for the plan and for the words of an oom. */
double workload_bytes(const struct problem *, double ring_bytes);

#endif
