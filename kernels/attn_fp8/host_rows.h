/* Entries of attn_fp8's caches for host kernels, under the names of attn/host_rows.h: found in their pages, converted to 512 bf16.
 * Three bits of mantissa fit into seven: nothing is lost while a scale is neither tiny nor huge (attn_fp8.h). */
#ifndef KBENCH_HOST_ROWS_H
#define KBENCH_HOST_ROWS_H

#include "attn/host_lists.h"
#include "attn_fp8.h"
#include "host.h"

struct caches {
    const char *base[2];        /* window, topk */
    int64_t     page_bytes[2];
    int32_t     page[2];        /* entries, a power of two */
    int32_t     log2_page[2];
};

/* Where one entry lies. */
struct row {
    const uint8_t *data;        /* 448 e4m3, 64 bf16 */
    const uint8_t *scales;      /* 7 ue8m0 */
};

static inline struct caches caches_of(const struct call *c)
{
    struct caches ret = {0};
    for (int list = 0; list < 2; list++) {
        int32_t page = (int32_t)c->problem->dim[ATTN_FP8_WINDOW_PAGE + list];
        ret.base[list] = c->t[ATTN_WINDOW_KV + list].p;
        ret.page_bytes[list] = attn_fp8_page_bytes(page);
        ret.page[list] = page;
        while (1 << ret.log2_page[list] < page) ret.log2_page[list]++;
    }
    return ret;
}

/* Up to `most` further entries of the lists; 0 at the end. */
static inline int32_t rows_next(const struct caches *c, struct walk *w, int32_t most, struct row *ret)
{
    int32_t n = 0, list;
    for (int32_t slot; n < most && (slot = walk_slot(w, &list)) >= 0; n++) {
        const char *page = c->base[list] + (slot >> c->log2_page[list]) * c->page_bytes[list];
        int32_t     at = slot & (c->page[list] - 1);
        ret[n] = (struct row){(const uint8_t *)page + at * ATTN_FP8_DATA,
                              (const uint8_t *)page + c->page[list] * ATTN_FP8_DATA + at * ATTN_FP8_SCALES};
    }
    return n;
}

static inline void row_prefetch(struct row row)
{
    host_prefetch(row.data, ATTN_FP8_DATA);
    __builtin_prefetch(row.scales, 0, 2);
}

/* e4m3 * 2^(scale - 127) as bf16, in 16-bit integers: exponents add, mantissas move. Codes 1..7 are subnormal and find their
 * leading bit. The scale keeps every code normal in bf16: 10 <= scale <= 246. */
HOST_INLINE uint16_t fp8_bf16(uint8_t code, uint16_t scale)
{
    uint16_t x = code & 0x7f, sign = (uint16_t)((code & 0x80) << 8);
    uint16_t normal = (uint16_t)((x << 4) + ((scale - 7) << 7));
    uint16_t four = (uint16_t)((x << 5) + ((scale - 8) << 7)), two = (uint16_t)((x << 6) + ((scale - 9) << 7));
    uint16_t one = (uint16_t)((scale - 9) << 7);
    uint16_t ret = x >= 8 ? normal : x >= 4 ? four : x >= 2 ? two : x ? one : 0;
    return sign | (x == 0x7f ? 0x7fc0 : ret);
}

/* The same for any scale: 255 is NaN, 0 is 2^-127; what bf16 can't hold is rounded, or inf. */
HOST_INLINE uint16_t fp8_bf16_any(uint8_t code, uint8_t scale)
{
    uint32_t x = code & 0x7f, sign = (uint32_t)(code & 0x80) << 24;
    float    low = (float)x * 0x1p-9f, value = x < 8 ? low : host_float((x << 20) + (120u << 23));
    float    factor = host_float(scale == 255 ? 0x7fc00000u : scale ? (uint32_t)scale << 23 : 0x00400000u);
    uint16_t ret = host_bf16(value * factor);
    return (uint16_t)(sign >> 16) | (x == 0x7f ? 0x7fc0 : ret);
}

HOST_CLONES static void fp8_convert(const uint8_t *data, const uint8_t *scales, uint16_t *ret)
{
    for (int g = 0; g < ATTN_FP8_NOPE / ATTN_FP8_GROUP; g++, data += ATTN_FP8_GROUP, ret += ATTN_FP8_GROUP) {
        uint8_t scale = scales[g];
        if (scale >= 10 && scale <= 246)
            for (int i = 0; i < ATTN_FP8_GROUP; i++) ret[i] = fp8_bf16(data[i], scale);
        else
            for (int i = 0; i < ATTN_FP8_GROUP; i++) ret[i] = fp8_bf16_any(data[i], scale);
    }
    memcpy(ret, data, (ATTN_D - ATTN_FP8_NOPE) * 2);
}

/* The entry as 256 pairs of bf16, converted into `spare`. */
static inline const uint32_t *row_bf16(struct row row, uint32_t *spare)
{
    fp8_convert(row.data, row.scales, (uint16_t *)spare);
    return spare;
}

#endif
