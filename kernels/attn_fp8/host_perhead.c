/* attn_fp8/host_perhead: every head of every request by itself, each converting all entries. The code: attn/host_perhead.h. */
#include "attn_fp8/host_rows.h"
#include "attn/host_perhead.h"

KERNEL = {
    FOR_OP(attn_fp8),
    .note = "one thread a (request, head), KV re-read and converted by every head: bound by the conversions",
    .engine = HOST,
    .growth = {{"ctx", 0}},
    .launch = perhead_launch,
};
