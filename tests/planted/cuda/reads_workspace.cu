#include "../reads_workspace.c"
