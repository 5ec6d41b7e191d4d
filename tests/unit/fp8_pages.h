/* For tests of attn_fp8: entries found and decoded as the words of attn_fp8.h say it, one element after the other. */
#ifndef KBENCH_TEST_FP8_PAGES_H
#define KBENCH_TEST_FP8_PAGES_H

#include <stdint.h>
#include "attn_fp8.h"
#include "dtype.h"

/* Bytes from the start of a cache to an entry's 576 bytes of data and to its 8 of scales. */
static inline int64_t fp8_data_at(int64_t page, int64_t slot)
{
    return slot / page * attn_fp8_page_bytes(page) + slot % page * 576;
}

static inline int64_t fp8_scales_at(int64_t page, int64_t slot)
{
    return slot / page * attn_fp8_page_bytes(page) + page * 576 + slot % page * 8;
}

static inline double fp8_value(const uint8_t *cache, int64_t page, int64_t slot, int d)
{
    const uint8_t *data = cache + fp8_data_at(page, slot), *scales = cache + fp8_scales_at(page, slot);
    if (d < 448) return f64_from_e4m3(data[d]) * f64_from_ue8m0(scales[d / 64]);
    return dtype_load(BF16, data + 448, d - 448);
}

#endif
