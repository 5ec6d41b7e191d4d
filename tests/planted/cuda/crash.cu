#include "../crash.c"
