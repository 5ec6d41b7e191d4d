#include "../right.c"
