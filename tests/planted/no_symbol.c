/* A shared object that is no kernel: refused in words. */
int kbench_something_else(void);
int kbench_something_else(void) { return 1; }
