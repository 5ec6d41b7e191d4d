#include "../unsteady.c"
