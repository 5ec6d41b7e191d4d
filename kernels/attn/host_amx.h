/* The matrix product of host_gemm.h on AMX tiles: 16 x 16 floats += 16 x 32 bf16 times 32 x 16 bf16, two by two tiles at a time.
 * Elements of a and b are pairs of bf16. M and K (in pairs) are multiples of 16, N too. x86-64 Linux.
 */
#ifndef KBENCH_ATTN_HOST_AMX_H
#define KBENCH_ATTN_HOST_AMX_H

#include <cpuid.h>
#include <immintrin.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host.h"

#define AMX_TARGET __attribute__((target("avx512f,amx-tile,amx-bf16")))

/* gcc's tile intrinsics don't say that they read memory: without this, stores before them may come too late or never. A tile
 * configuration that is half written ends in SIGSEGV. */
#define AMX_MEMORY() __asm__ volatile("" : : : "memory")

enum { AMX_MOST_K = 128 };   /* pairs, where a is transposed */

/* Whether processor, kernel and this process may use tiles. Asks the kernel, for all threads of the process: the state that
 * it saves for a thread grows by 8 KB from then on. */
static bool amx_request(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d >> 22 & 1) || !(d >> 24 & 1)) return false;
    const long request_permission = 0x1023, tile_data = 18;   /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */
    return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

/* For the calling thread: all eight tiles 16 rows of 64 bytes. */
AMX_TARGET static void amx_begin(void)
{
    struct {
        uint8_t  palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t  rows[16];
    } config = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        config.row_bytes[i] = 64;
        config.rows[i] = 16;
    }
    __asm__ volatile("" : : "r"(&config) : "memory");
    _tile_loadconfig(&config);
}

AMX_TARGET static void amx_end(void) { _tile_release(); }

/* to[i * to_stride + j] = from[j * from_stride + i] for 16 x 16 elements: within 128 bits first, then the 128-bit pieces. */
AMX_TARGET static void amx_transpose(const float *from, int64_t from_stride, float *to, int64_t to_stride)
{
    __m512i r[16], u[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) r[i] = _mm512_loadu_si512(from + i * from_stride);
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        u[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        u[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_unpacklo_epi64(u[i], u[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(u[i], u[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(u[i + 1], u[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(u[i + 1], u[i + 3]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {   /* r[4 g + i], piece l: column 4 l + i of rows 4 g .. 4 g + 3 */
        __m512i even0 = _mm512_shuffle_i32x4(r[i], r[4 + i], 0x88), even1 = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0x88);
        __m512i odd0 = _mm512_shuffle_i32x4(r[i], r[4 + i], 0xdd), odd1 = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0xdd);
        _mm512_storeu_si512(to + i * to_stride, _mm512_shuffle_i32x4(even0, even1, 0x88));
        _mm512_storeu_si512(to + (4 + i) * to_stride, _mm512_shuffle_i32x4(odd0, odd1, 0x88));
        _mm512_storeu_si512(to + (8 + i) * to_stride, _mm512_shuffle_i32x4(even0, even1, 0xdd));
        _mm512_storeu_si512(to + (12 + i) * to_stride, _mm512_shuffle_i32x4(odd0, odd1, 0xdd));
    }
}

/* Tiles 0..3 are c (row of tiles * 2 + column of tiles), 4 and 5 are a, 6 and 7 are b. `tall` and `wide` are constants. */
AMX_TARGET HOST_INLINE void amx_block(bool tall, bool wide, int64_t K, const float *a, int64_t am, const float *b, int64_t ldb,
                                      float *c, int64_t ldc, bool add)
{
    AMX_MEMORY();
    if (add) {
        _tile_loadd(0, c, ldc * 4);
        if (wide) _tile_loadd(1, c + 16, ldc * 4);
        if (tall) _tile_loadd(2, c + 16 * ldc, ldc * 4);
        if (tall && wide) _tile_loadd(3, c + 16 * ldc + 16, ldc * 4);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t k = 0; k < K; k += 16) {
        _tile_loadd(4, a + k, am * 4);
        _tile_loadd(6, b + k * ldb, ldb * 4);
        _tile_dpbf16ps(0, 4, 6);
        if (wide) {
            _tile_loadd(7, b + k * ldb + 16, ldb * 4);
            _tile_dpbf16ps(1, 4, 7);
        }
        if (tall) {
            _tile_loadd(5, a + 16 * am + k, am * 4);
            _tile_dpbf16ps(2, 5, 6);
            if (wide) _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, c, ldc * 4);
    if (wide) _tile_stored(1, c + 16, ldc * 4);
    if (tall) _tile_stored(2, c + 16 * ldc, ldc * 4);
    if (tall && wide) _tile_stored(3, c + 16 * ldc + 16, ldc * 4);
}

/* Up to two rows of tiles. a lies in rows: ak is 1. */
AMX_TARGET static void amx_rows(bool tall, int64_t N, int64_t K, const float *a, int64_t am, const float *b, int64_t ldb, float *c,
                                int64_t ldc, bool add)
{
    for (int64_t n = 0; n < N; n += 32) {
        bool wide = n + 16 < N;
        if (tall && wide) amx_block(true, true, K, a, am, b + n, ldb, c + n, ldc, add);
        if (tall && !wide) amx_block(true, false, K, a, am, b + n, ldb, c + n, ldc, add);
        if (!tall && wide) amx_block(false, true, K, a, am, b + n, ldb, c + n, ldc, add);
        if (!tall && !wide) amx_block(false, false, K, a, am, b + n, ldb, c + n, ldc, add);
    }
}

/* As host_gemm.h says; a either in rows (ak = 1) or in columns (am = 1), which tiles can't load: turned first, K <= AMX_MOST_K. */
AMX_TARGET static void amx_gemm(int64_t M, int64_t N, int64_t K, const float *a, int64_t am, int64_t ak, const float *b,
                                int64_t ldb, float *c, int64_t ldc, const float *scale)
{
    float turned[32 * AMX_MOST_K] __attribute__((aligned(64)));
    for (int64_t m = 0; m < M; m += 32) {
        bool         tall = m + 16 < M;
        const float *rows = a + m * am;
        int64_t      stride = am;
        if (ak != 1) {
            for (int64_t i = 0; i < (tall ? 32 : 16); i += 16)
                for (int64_t k = 0; k < K; k += 16) amx_transpose(a + m + i + k * ak, ak, turned + i * AMX_MOST_K + k, AMX_MOST_K);
            __asm__ volatile("" : : "r"(turned) : "memory");
            rows = turned;
            stride = AMX_MOST_K;
        }
        for (int64_t i = 0; scale && i < (tall ? 32 : 16); i++) {
            float factor = scale[m + i];
            if (factor != 1)
                for (int64_t n = 0; n < N; n++) c[(m + i) * ldc + n] *= factor;
        }
        amx_rows(tall, N, K, rows, stride, b, ldb, c + m * ldc, ldc, scale != NULL);
    }
}

#endif
