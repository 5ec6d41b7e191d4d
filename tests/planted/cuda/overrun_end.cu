#include "../overrun_end.c"
