/* hc_pre on the CPU: K is cut into 32 pieces, whatever the number of threads, so that the order of additions is fixed. Includer:
 * MIX_BF16, 0 or 1, which twins are read (so: no include guard).
 *  A thread takes a piece: its 24 x 512 weights stay in the nearer caches (bf16 ones are widened into them once) while all tokens
 * pass by, two at a time against four outputs. Partial sums go through the workspace.
 */
#include <omp.h>

#include "hc_pre.h"
#include "host.h"
#include "kernel.h"

enum { K = HC_PRE_K, N = HC_PRE_N, PIECES = 32, LONG = K / PIECES, LANES = 8, TOKENS = 2, OUTPUTS = 4, SUMS = N + 1 };

typedef float lanes __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

/* A thread's memory. */
struct scratch {
    float w[N * LONG], x[TOKENS * LONG];
};

static const char *mix_row(const struct arg *t, int64_t row) { return (const char *)t->p + row * t->stride; }

HOST_INLINE float mix_total(lanes sum)
{
    float all = 0;
    for (int l = 0; l < LANES; l++) all += sum[l];
    return all;
}

/* One piece of a row as fp32, where it lies if it is that already. */
HOST_CLONES static const float *mix_piece(const struct arg *t, int64_t row, int64_t piece, float *room)
{
    const char *from = mix_row(t, row) + piece * LONG * (MIX_BF16 ? 2 : 4);
    if (!MIX_BF16) return (const float *)from;
    for (int i = 0; i < LONG; i++) room[i] = host_f32(((const uint16_t *)from)[i]);
    return room;
}

/* Sums of two tokens against four outputs, from first on: ret[token][SUMS]. */
HOST_CLONES static void mix_dots(const float *const *x, const float *const *w, int first, float *ret)
{
    lanes sum[TOKENS][OUTPUTS] = {{{0}}};
    for (int k = 0; k < LONG; k += LANES)
        for (int i = 0; i < OUTPUTS; i++)
            for (int t = 0; t < TOKENS; t++) sum[t][i] += *(const lanes *)(x[t] + k) * *(const lanes *)(w[first + i] + k);
    for (int t = 0; t < TOKENS; t++)
        for (int i = 0; i < OUTPUTS; i++) ret[t * SUMS + first + i] = mix_total(sum[t][i]);
}

HOST_CLONES static float mix_square(const float *x)
{
    lanes sum = {0};
    for (int k = 0; k < LONG; k += LANES) sum += *(const lanes *)(x + k) * *(const lanes *)(x + k);
    return mix_total(sum);
}

/* partial[batch][SUMS] of one piece; an odd last token is computed twice and written once. */
static void mix_run_piece(const struct call *c, struct scratch *s, int64_t piece, float *partial)
{
    const struct arg *t = c->t;
    const int64_t     batch = c->problem->dim[HC_PRE_BATCH];
    const float      *w[N], *x[TOKENS];
    for (int i = 0; i < N; i++) w[i] = mix_piece(&t[MIX_BF16 ? HC_PRE_W16 : HC_PRE_W32], i, piece, s->w + i * LONG);
    for (int64_t b = 0; b < batch; b += TOKENS) {
        float ret[TOKENS * SUMS];
        for (int i = 0; i < TOKENS; i++) {
            int64_t token = b + i < batch ? b + i : b;
            x[i] = mix_piece(&t[MIX_BF16 ? HC_PRE_X16 : HC_PRE_X32], token, piece, s->x + i * LONG);
            ret[i * SUMS + N] = mix_square(x[i]);
        }
        for (int first = 0; first < N; first += OUTPUTS) mix_dots(x, w, first, ret);
        memcpy(partial + b * SUMS, ret, sizeof *ret * SUMS * (size_t)(batch - b < TOKENS ? batch - b : TOKENS));
    }
}

static void mix_combine(const struct call *c, const float *partial, int64_t b)
{
    const int64_t batch = c->problem->dim[HC_PRE_BATCH];
    float         sum[SUMS] = {0};
    for (int64_t piece = 0; piece < PIECES; piece++)
        for (int i = 0; i < SUMS; i++) sum[i] += partial[(piece * batch + b) * SUMS + i];
    memcpy((char *)c->t[HC_PRE_MIX].p + b * c->t[HC_PRE_MIX].stride, sum, N * sizeof *sum);
    memcpy((char *)c->t[HC_PRE_SQSUM].p + b * c->t[HC_PRE_SQSUM].stride, sum + N, sizeof *sum);
}

static size_t mix_workspace(const struct problem *p, const struct device *device, const int32_t *tune)
{
    (void)tune;
    return (size_t)device->sm_count * sizeof(struct scratch) + (size_t)(PIECES * p->dim[HC_PRE_BATCH] * SUMS) * sizeof(float);
}

static int mix_launch(const struct call *c)
{
    const int32_t   threads = c->device->sm_count;
    const int64_t   batch = c->problem->dim[HC_PRE_BATCH];
    struct scratch *scratch = c->workspace;
    float          *partial = (float *)(scratch + threads);
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(static)
        for (int64_t piece = 0; piece < PIECES; piece++)
            mix_run_piece(c, &scratch[omp_get_thread_num()], piece, partial + piece * batch * SUMS);
#pragma omp for schedule(static)
        for (int64_t b = 0; b < batch; b++) mix_combine(c, partial, b);
    }
    return 0;
}
