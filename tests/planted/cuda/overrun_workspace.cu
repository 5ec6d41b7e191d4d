#include "../overrun_workspace.c"
