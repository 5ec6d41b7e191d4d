#include "../wrong_value.c"
