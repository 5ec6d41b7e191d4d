#include "../wrong_head.c"
