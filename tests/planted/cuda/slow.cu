#include "../slow.c"
