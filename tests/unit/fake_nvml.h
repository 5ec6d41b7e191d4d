/* What the made-up NVML shall answer: the test writes it, fake_nvml.c reads it. */
#ifndef KBENCH_TEST_FAKE_NVML_H
#define KBENCH_TEST_FAKE_NVML_H

struct fake_nvml {
    const char        *uuid;        /* of the one device, as NVML names it */
    int                lost;        /* every question about the device fails with this */
    unsigned           sm_MHz, memory_MHz, power_mW, temperature_C, processes;
    unsigned long long reasons;
    unsigned           ours;        /* which of the processes we are, counted from 1; 0: under a number that we don't know */
    unsigned long long memory_B;    /* of the first process; each further one holds 1 B more */
    int                open;        /* init less shutdown */
};

#endif
