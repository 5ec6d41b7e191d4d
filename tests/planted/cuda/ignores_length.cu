#include "../ignores_length.c"
