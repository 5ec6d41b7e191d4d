#include "../assert.c"
