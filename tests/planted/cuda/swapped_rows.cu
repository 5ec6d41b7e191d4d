#include "../swapped_rows.c"
