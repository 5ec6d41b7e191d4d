#include "../reads_slot_0.c"
