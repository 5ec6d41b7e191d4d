/* A kernel: one way to compute an op. One file, one KERNEL definition at its end, one line in kernels/meson.build.
 *  The file's path below kernels/ without its ending is the kernel's name; the build passes it in, so that a copied file needs
 * no edit. The same header compiled into a shared object makes an out-of-tree kernel (kbench --plugin ./mine.so).
 */
#ifndef KBENCH_KERNEL_H
#define KBENCH_KERNEL_H

#include "op.h"

enum engine { HOST, CUDA };

/* PROBE: does only an op's loads; never checked or ranked, drawn as the practical limit.
 * ORACLE: a naive double-precision kernel whose float outputs are double; serves as reference for large problems. Where the op
 *         leaves an element open it writes UNSPECIFIED_BITS.
 * CLEAN: elements of float outputs that the op leaves unspecified are -inf, which the check then demands. */
enum promise { PROBE = 1, ORACLE = 2, CLEAN = 4 };

/* call.flags. PDL_OK: the previous kernel of the stream may still run; never set by the timer. */
enum call_flag { PDL_OK = 1 };

struct CUstream_st;

struct device {
    int32_t sm, sm_count;  /* 90, 132. HOST: 0 and the number of OpenMP threads */
    int64_t l2_bytes, smem_bytes, memory_bytes;  /* HOST: last-level cache; 0; physical memory */
};

struct growth {
    const char *dim;
    double      exponent;  /* declared cost; above dim.ideal it is shown wherever the name is */
};

struct tunable {
    const char *name;
    int32_t     value[8];  /* the choices offered, ended by 0 unless full; the first is the default */
    int32_t     min, max;  /* what -t may set */
};

/* A tensor as a kernel sees it. Rows start at multiples of 16 bytes. stride: bytes from row to row, >= row_bytes; rows shorter
 * than 16 bytes, and those of BYTES tensors, are dense. A view into a larger tensor is fine: between rows lies somebody else's
 * data. */
struct arg {
    void   *p;
    int64_t stride;
};

/* One launch. Pointers are in the kernel's own memory: device, or host for HOST. */
struct call {
    const struct problem *problem;    /* live dims hold their max */
    const struct device  *device;
    const struct arg     *t;          /* by the op's tensor index */
    void                 *workspace;  /* aligned to 256; undefined at each launch; one buffer serves all ops of a stream */
    void                 *zeroed;     /* zero at the first launch, and zero again after each (checked): split counters */
    void                 *state;      /* from open; one per kernel and problem, shared by layers; holds no tensor pointers */
    const int32_t        *tune;       /* chosen values, in the order of kernel.tunable */
    struct CUstream_st   *stream;
    uint32_t              flags;
};

struct kernel {
    uint32_t       abi, size;
    uint64_t       layout;             /* the op's dims and tensors as compiled: see FOR_OP */
    const char    *name, *op, *note;   /* note: the idea, and the limit it is up against */
    enum engine    engine;
    uint64_t       reads;              /* bit t: reads tensor t (twins in other formats hold NaN for it); 0: all */
    uint64_t       promises;           /* enum promise */
    struct growth  growth[MAX_DIMS];
    struct tunable tunable[MAX_TUNABLES];
    const char *(*unfit)(const struct problem *, const struct device *);  /* NULL, or why it can't run this */
    size_t      (*workspace)(const struct problem *, const struct device *, const int32_t *tune);  /* bytes; NULL: none */
    size_t      (*zeroed)(const struct problem *, const struct device *, const int32_t *tune);     /* bytes; NULL: none */
    int         (*open)(const struct problem *, const struct device *, void **state);
    void        (*close)(void *state);
    int         (*launch)(const struct call *);  /* enqueue only: no sync, no allocation; cudaError_t. HOST: done on return */
    const char *(*describe)(void *state, char *ret, size_t size);         /* what open chose, for the record; NULL: no choice */
};

/* The build gives each kernel file its own symbol and name; a plug-in keeps these defaults and is named by its file. */
#ifndef KERNEL_SYMBOL
#define KERNEL_SYMBOL kbench_plugin
#define KERNEL_NAME NULL
#endif

/* `const` at namespace scope is internal in C++, hence the declaration before the definition. */
#ifdef __cplusplus
#define KERNEL                                     \
    extern "C" const struct kernel KERNEL_SYMBOL;  \
    extern "C" const struct kernel KERNEL_SYMBOL
#else
#define KERNEL                                \
    extern const struct kernel KERNEL_SYMBOL; \
    const struct kernel KERNEL_SYMBOL
#endif

/* First words of a definition: KERNEL = {FOR_OP(attn), .note = "...", ...}. <op>_layout stands in reference/<op>.h and names
 * the dims and tensors that the kernel was compiled against; a unit test holds it to layout_hash(op). */
#define FOR_OP(op_) \
    .abi = KBENCH_ABI, .size = sizeof(struct kernel), .layout = op_##_layout, .name = KERNEL_NAME, .op = #op_

#endif
