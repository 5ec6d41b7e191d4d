#include "../lse_with_sink.c"
