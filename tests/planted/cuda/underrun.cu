#include "../underrun.c"
