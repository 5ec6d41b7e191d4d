#include "../overrun.c"
