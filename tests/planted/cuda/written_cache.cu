#include "../written_cache.c"
