/* An assertion fails, on the device where there is one. */
#undef NDEBUG
#include <assert.h>

#include "right.h"

STEP(damage)
{
    assert(v->batch < 0);
}

LAUNCH_RIGHT_THEN(damage)

KERNEL = {FOR_OP(attn), .note = "planted: assertion", .engine = ENGINE, .launch = launch};
