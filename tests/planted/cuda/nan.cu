#include "../nan.c"
