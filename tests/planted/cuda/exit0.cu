#include "../exit0.c"
