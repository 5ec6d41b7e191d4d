/* What a launch of the plug-in pushes.c shall do, by its state, and whom it asks meanwhile. */
#ifndef KBENCH_TEST_PUSHES_H
#define KBENCH_TEST_PUSHES_H

struct pushes {
    void (*look)(struct pushes *);   /* asked within each range, and after the last */
    int   pop_more, leave_open;      /* pops without a push; pushes without a pop */
    int   n;                         /* of look's answers */
    char  seen[64][64];
};

#endif
