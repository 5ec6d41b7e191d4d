/* The cuda engine of a build without a CUDA toolkit. */
#include "device.h"

#include "base.h"

struct dev *dev_open_cuda(int ordinal, char *ret_why, size_t size)
{
    text(ret_why, size, "device cuda:%d: this build has no CUDA; install a toolkit (12.4 or newer) and rebuild", ordinal);
    return NULL;
}
