/* attn/host_perhead: every head of every request by itself. The code stands in host_perhead.h. */
#include "attn/host_rows.h"
#include "attn/host_perhead.h"

KERNEL = {
    FOR_OP(attn),
    .note = "one thread a (request, head), KV re-read by every head: bound by the caches' bandwidth",
    .engine = HOST,
    .growth = {{"ctx", 0}},
    .launch = perhead_launch,
};
