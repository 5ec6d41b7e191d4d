#include "../hang.c"
