#include "../written_input.c"
