#include "../memoised.c"
