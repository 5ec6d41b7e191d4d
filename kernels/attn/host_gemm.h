/* A small matrix product, written once and included once an instruction set (so: no include guard).
 *
 *   c[m][n] = scale[m] * c[m][n] + sum_k a[m * am + k * ak] * b[k * ldb + n]        scale NULL: c is not read
 *
 * An element of a and b is 4 bytes: a float, or a pair of bf16 that are two steps of the sum at once. M is a multiple of 8, N of
 * 16. A block of c stays in registers while k runs; a is broadcast from memory, so that either order of a is as good.
 *
 *   GEMM          name of the function
 *   GEMM_TARGET   attribute that turns the instruction set on
 *   GEMM_VEC      vector type, GEMM_LANES floats wide
 *   GEMM_ROWS     rows of a block, 4 or 8: as many as the registers hold, two vectors wide
 *   GEMM_SPLAT(x)          a vector of x, bit for bit: x may be a pair
 *   GEMM_MADD(sum, x, y)   sum + x * y
 */
#define GEMM_GLUE_(a, b) a##b
#define GEMM_GLUE(a, b) GEMM_GLUE_(a, b)
#define GEMM_BLOCK GEMM_GLUE(GEMM, _block)

GEMM_TARGET HOST_INLINE void GEMM_BLOCK(int vectors, int64_t K, const float *a, int64_t am, int64_t ak, const float *b, int64_t ldb,
                                        float *c, int64_t ldc, const float *scale)
{
    GEMM_VEC sum[GEMM_ROWS][2];
#pragma GCC unroll 8
    for (int i = 0; i < GEMM_ROWS; i++) {
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++) {
            sum[i][j] = (GEMM_VEC){0};
            if (scale) sum[i][j] = *(const GEMM_VEC *)(c + i * ldc + j * GEMM_LANES) * scale[i];
        }
    }
    for (int64_t k = 0; k < K; k++) {
        GEMM_VEC y[2];
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++) y[j] = *(const GEMM_VEC *)(b + k * ldb + j * GEMM_LANES);
#pragma GCC unroll 8
        for (int i = 0; i < GEMM_ROWS; i++) {
            GEMM_VEC x = GEMM_SPLAT(a[i * am + k * ak]);
#pragma GCC unroll 2
            for (int j = 0; j < vectors; j++) sum[i][j] = GEMM_MADD(sum[i][j], x, y[j]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < GEMM_ROWS; i++) {
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++) *(GEMM_VEC *)(c + i * ldc + j * GEMM_LANES) = sum[i][j];
    }
}

GEMM_TARGET static void GEMM(int64_t M, int64_t N, int64_t K, const float *a, int64_t am, int64_t ak, const float *b, int64_t ldb,
                             float *c, int64_t ldc, const float *scale)
{
    int64_t n = 0;
    for (; n + 2 * GEMM_LANES <= N; n += 2 * GEMM_LANES)
        for (int64_t m = 0; m < M; m += GEMM_ROWS)
            GEMM_BLOCK(2, K, a + m * am, am, ak, b + n, ldb, c + m * ldc + n, ldc, scale ? scale + m : NULL);
    for (; n < N; n += GEMM_LANES)
        for (int64_t m = 0; m < M; m += GEMM_ROWS)
            GEMM_BLOCK(1, K, a + m * am, am, ak, b + n, ldb, c + m * ldc + n, ldc, scale ? scale + m : NULL);
}

#undef GEMM
#undef GEMM_BLOCK
#undef GEMM_GLUE
#undef GEMM_GLUE_
#undef GEMM_LANES
#undef GEMM_MADD
#undef GEMM_ROWS
#undef GEMM_SPLAT
#undef GEMM_TARGET
#undef GEMM_VEC
