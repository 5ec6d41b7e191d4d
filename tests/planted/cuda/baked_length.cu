#include "../baked_length.c"
