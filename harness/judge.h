/* What one launch of a check left behind: outputs, guards, gaps, inputs and scratch memory, judged against the reference. */
#ifndef KBENCH_JUDGE_H
#define KBENCH_JUDGE_H

#include "check.h"

/* A check on its way: the verdict so far, and the outputs of the first launch, to which others must be equal bit for bit. */
struct check {
    struct bound  *bound;
    struct verdict verdict;
    void          *first[MAX_TENSORS];   /* host copies of strided outputs */
    step_fn       *step;
    void          *step_arg;
};

/* Ends the check with a verdict; false, so that steps read `return judge_fail(...)`. */
bool judge_fail(struct check *, enum status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A device error ends it too, if there is one. */
bool judge_good(struct check *, int error, const char *what);

/* All outputs of a launch that is over: guards, gaps, inputs, then values of `set`; `rule`: also equal to the first launch's, else
 * this is why not. keep: this is the first launch. */
bool judge_outputs(struct check *, int set, int poison, const char *when, const char *rule, bool keep);
/* Scratch memory after a launch: stayed inside it, and counters are zero again. */
bool judge_scratch(struct check *, const char *when);
/* Outputs of the ring's set 0 as they are now. */
void judge_ring_outputs(struct check *);

#endif
