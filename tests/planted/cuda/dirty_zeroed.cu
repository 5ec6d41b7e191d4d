#include "../dirty_zeroed.c"
