/* What is known of the device that a run was measured on. Filled by a worker, kept in env.json. Plain data, no pointers. */
#ifndef KBENCH_MACHINE_H
#define KBENCH_MACHINE_H

#include "kernel.h"

/* Measured at the start of every run; 0 where not measured. */
struct ceilings {
    double read_GBps;      /* read-only stream, bytes read / time */
    double copy_GBps;      /* bytes read + written / time */
    double matrix_GFLOPs;  /* bf16 matrix product, 1e9 flop/s */
    double latency_ns;     /* one block: load an index, load the row it names, store; cold */
    double floor_ns;       /* empty kernel, timed as rows are */
    double event_ns;       /* empty kernel between two events (CUDA), or the clock's resolution (host) */
};

enum { SPINS = 5 };

struct machine {
    enum engine     engine;
    int32_t         ordinal;       /* CUDA device number; 0 for HOST */
    struct device   facts;
    char            name[96];      /* "NVIDIA H200", "AMD EPYC 9B45, 2 threads" */
    char            uuid[64];
    char            driver[48];    /* "580.159.04"; empty for HOST */
    char            toolkit[48];   /* CUDA runtime compiled against, "13.0"; for HOST the C compiler */
    char            features[160]; /* HOST: "avx512bf16 amx_bf16"; CUDA: "L2 60 MB, 132 SMs" */
    int32_t         sm_clock_MHz, memory_clock_MHz, power_W, temperature_C;  /* as found; -1 unknown */
    char            mig[48];       /* profile of a MIG instance, "1g.18gb"; empty: a whole device */
    double          spin_ns[SPINS];  /* what spins of 1, 2, 5, 10 and 50 us read, less the floor; 0 not measured */
    struct ceilings ceilings;
};

#endif
