#include "../unwritten_tail.c"
