/* Runs one style in one form and says whether its results are right; ../waits.py holds NVIDIA's sanitizers against all of them.
 * usage: waits                 a line for each style and form, as CSV: what is handed on, which wait the form lacks, a note
 *        waits STYLE FORM      FORM: right, early, reused; prints 'results: right' or 'results: wrong (N of M words)'
 * Exit 0 in both cases, 2: no such style or form, 5: CUDA failed, 77: not for this GPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "block.cuh"
#include "bulk.cuh"
#include "grid.cuh"
#include "product.cuh"
#include "ring.cuh"

static void check(cudaError_t error, const char *what) {
    if (!error)
        return;
    fprintf(stderr, "waits: %s: %s\n", what, cudaGetErrorString(error));
    exit(5);
}

/* Small whole numbers, as bf16: sums of their products are exact. */
static int number(int tile, int row, int column) {
    const unsigned x = ((unsigned)(tile * TILE_ROWS + row) * 64 + (unsigned)column) * 2654435761u;
    return (int)((x >> 20) % 7) - 3;
}
static uint32_t word_of(int tile, int i) {
    float low = (float)number(tile, i / 32, i % 32 * 2), high = (float)number(tile, i / 32, i % 32 * 2 + 1);
    uint32_t a, b;
    memcpy(&a, &low, 4);
    memcpy(&b, &high, 4);
    return a >> 16 | (b & 0xffff0000u);
}

/* What a thread is to find, of the words it leaves. Returns how many words the style leaves. */
typedef int expect(uint32_t *ret);

static int expect_tiles(uint32_t *ret) {
    for (int t = 0; t < READERS; t++) {
        ret[t] = 0;
        for (int i = 0; i < TILES * PIECES; i++) {
            const int at = wait_piece(t, i % PIECES) * 4;
            ret[t] = wait_fold(ret[t], word_of(i / PIECES, at), word_of(i / PIECES, at + 3));
        }
    }
    return READERS;
}

/* c of tile * tile^T: thread t of warp w has rows 16 w + t / 4 and that + 8, columns 8 n + t % 4 * 2 and that + 1. */
static int expect_products(uint32_t *ret, int tiles, int times) {
    for (int at = 0; at < WORDS; at++) {
        const int t = at / 32, n = at % 32, row = t / 32 * 16 + t % 32 / 4 + n % 4 / 2 * 8, column = n / 4 * 8 + t % 4 * 2 + n % 2;
        int       sum = 0;
        for (int i = 0; i < tiles; i++)
            for (int k = 0; k < 64; k++)
                sum += number(i, row, k) * number(i, column, k);
        const float all = (float)(sum * times);
        memcpy(ret + at, &all, 4);
    }
    return WORDS;
}
static int expect_publish(uint32_t *ret) { return expect_products(ret, TILES, 1); }
static int expect_sums(uint32_t *ret) { return expect_products(ret, 1, PRODUCTS); }
static int expect_stages(uint32_t *ret) { return expect_products(ret, TILES, PRODUCTS); }

/* Of rounds: each thread finds the word of partner(t). */
static int expect_rounds(uint32_t *ret, int threads, int (*partner)(int)) {
    for (int t = 0; t < threads; t++) {
        ret[t] = 0;
        for (int i = 0; i < TILES; i++)
            ret[t] = wait_fold(ret[t], word_of(i, partner(t) * 4), 0);
    }
    return threads;
}
static int of_next_warp(int t) { return wait_piece(t, 0); }
static int of_other_half(int t) { return t ^ 16; }
static int of_other_block(int t) { return t ^ READERS; }
static int expect_block(uint32_t *ret) { return expect_rounds(ret, READERS, of_next_warp); }
static int expect_warp(uint32_t *ret) { return expect_rounds(ret, WARP, of_other_half); }
static int expect_cluster(uint32_t *ret) { return expect_rounds(ret, 2 * READERS, of_other_block); }

static int expect_parts(uint32_t *ret) {
    for (int t = 0; t < READERS; t++) {
        ret[t] = 0;
        for (int i = 0; i < GRID_BLOCKS; i++)
            ret[t] = wait_fold(ret[t], word_of((i * READERS + t) / TILE_PIECES, (i * READERS + t) % TILE_PIECES * 4), 0);
    }
    return READERS;
}

/* Launches; the tensor map is over in. */
typedef void launch(const wait_data &d, const CUtensorMap &map);

template <int FORM> static void launch_ring(const wait_data &d, const CUtensorMap &) { wait_ring<FORM><<<1, READERS>>>(d); }
template <int FORM> static void launch_own(const wait_data &d, const CUtensorMap &) { wait_ring_own<FORM><<<1, READERS>>>(d); }
template <int FORM> static void launch_barrier(const wait_data &d, const CUtensorMap &) {
    wait_ring_barrier<FORM><<<1, READERS + WARP>>>(d);
}
template <int FORM> static void launch_line(const wait_data &d, const CUtensorMap &map) {
    wait_bulk<FORM, false><<<1, READERS + WARP>>>(d, map);
}
template <int FORM> static void launch_tensor(const wait_data &d, const CUtensorMap &map) {
    wait_bulk<FORM, true><<<1, READERS + WARP>>>(d, map);
}
template <int FORM> static void launch_publish(const wait_data &d, const CUtensorMap &) { wait_publish<FORM><<<1, READERS>>>(d); }
template <int FORM> static void launch_sums(const wait_data &d, const CUtensorMap &) { wait_sums<FORM><<<1, READERS>>>(d); }
template <int FORM> static void launch_products(const wait_data &d, const CUtensorMap &map) {
    wait_products<FORM><<<1, READERS + WARP>>>(d, map);
}
template <int FORM> static void launch_block(const wait_data &d, const CUtensorMap &) {
    wait_block<FORM, false><<<1, READERS>>>(d);
}
template <int FORM> static void launch_named(const wait_data &d, const CUtensorMap &) {
    wait_block<FORM, true><<<1, READERS + WARP>>>(d);
}
template <int FORM> static void launch_warp(const wait_data &d, const CUtensorMap &) { wait_warp<FORM><<<1, WARP>>>(d); }
template <int FORM> static void launch_ticket(const wait_data &d, const CUtensorMap &) {
    wait_ticket<FORM><<<GRID_BLOCKS, READERS>>>(d);
}

static cudaLaunchConfig_t config_of(unsigned blocks, cudaLaunchAttribute *attribute) {
    cudaLaunchConfig_t how = {};
    how.gridDim = dim3(blocks);
    how.blockDim = dim3(READERS);
    how.attrs = attribute;
    how.numAttrs = 1;
    return how;
}
template <int FORM> static void launch_cluster(const wait_data &d, const CUtensorMap &) {
    cudaLaunchAttribute shape = {};
    shape.id = cudaLaunchAttributeClusterDimension;
    shape.val.clusterDim.x = 2;
    shape.val.clusterDim.y = shape.val.clusterDim.z = 1;
    const cudaLaunchConfig_t how = config_of(2, &shape);
    check(cudaLaunchKernelEx(&how, wait_cluster<FORM>, d), "launch");
}
template <int FORM> static void launch_dependent(const wait_data &d, const CUtensorMap &) {
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    const cudaLaunchConfig_t how = config_of(1, &early);
    wait_parts<<<GRID_BLOCKS, READERS>>>(d);
    check(cudaLaunchKernelEx(&how, wait_dependent<FORM>, d), "launch");
}

#define FORMS(name) {launch_##name<RIGHT>, launch_##name<EARLY>, launch_##name<REUSED>}
#define NOT_REUSED(name) {launch_##name<RIGHT>, launch_##name<EARLY>, NULL}
static const char *const form_names[] = {"right", "early", "reused"};
static const struct style {
    const char *name, *words[3];  /* words: of the right form; what the others lack */
    expect     *expected;
    launch     *form[3];
    bool        products;         /* sm_90a alone */
    const char *note = "";        /* of the form EARLY */
} styles[] = {
    {"ring", {"groups of 16-byte copies, a block", "cp.async.wait_group", "__syncthreads before the next copy"}, expect_tiles,
        FORMS(ring), false},
    {"own", {"groups of 16-byte copies, read by who copied", "cp.async.wait_group", NULL}, expect_tiles, NOT_REUSED(own), false},
    {"barrier", {"16-byte copies that arrive at an mbarrier", "mbarrier wait for full", "release after the reads"}, expect_tiles,
        FORMS(barrier), false},
    {"line", {"cp.async.bulk", "mbarrier wait for full", "release after the reads"}, expect_tiles, FORMS(line), false},
    {"tensor", {"cp.async.bulk.tensor", "mbarrier wait for full", "release after the reads"}, expect_tiles, FORMS(tensor), false},
    {"publish", {"stores that wgmma reads", "fence.proxy.async", NULL}, expect_publish, NOT_REUSED(publish), true},
    {"products", {"cp.async.bulk.tensor that wgmma reads", "mbarrier wait for full", "release after wgmma.wait_group"},
        expect_stages, FORMS(products), true},
    {"sums", {"registers that wgmma writes", "wgmma.wait_group", NULL}, expect_sums, NOT_REUSED(sums), true,
        "no fault left: the assembler waits by itself (C7517)"},
    {"block", {"shared memory of a block", "__syncthreads before the reads", "__syncthreads after the reads"}, expect_block,
        FORMS(block), false},
    {"named", {"shared memory of some warps", "bar.sync before the reads", "bar.sync after the reads"}, expect_block, FORMS(named),
        false},
    {"warp", {"shared memory of a warp", "__syncwarp", NULL}, expect_warp, NOT_REUSED(warp), false},
    {"cluster", {"shared memory of another block", "barrier.cluster before the reads", "barrier.cluster after the reads"},
        expect_cluster, FORMS(cluster), false},
    {"dependent", {"workspace between two kernels", "griddepcontrol.wait", NULL}, expect_parts, NOT_REUSED(dependent), false},
    {"ticket", {"workspace, merged by the last block", "__threadfence", "__syncthreads before the ticket"}, expect_parts,
        FORMS(ticket), false},
};

static void list(void) {
    printf("style,form,handed_on,lacks,note\n");
    for (const style &s : styles)
        for (int form = 0; form < 3; form++)
            if (s.form[form])
                printf("%s,%s,\"%s\",\"%s\",\"%s\"\n", s.name, form_names[form], s.words[0], form ? s.words[form] : "",
                       form == EARLY ? s.note : "");
}

static const style *find(const char *name, const char *form_name, int *form) {
    for (const style &s : styles)
        for (*form = 0; *form < 3; ++*form)
            if (!strcmp(s.name, name) && !strcmp(form_names[*form], form_name) && s.form[*form])
                return &s;
    fprintf(stderr, "waits: no style '%s' in form '%s'; without arguments all are listed\n", name, form_name);
    exit(2);
}

int main(int argc, char **argv) {
    static uint32_t in[TILES * TILE_PIECES * 4], expected[WORDS], out[WORDS];
    int form, major = 0, wrong = 0;
    if (argc != 3) {
        list();
        return argc == 1 ? 0 : 2;
    }
    const style *s = find(argv[1], argv[2], &form);
    check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "no device");
    if (s->products ? major != 9 : major < 9)
        return 77;
    for (int i = 0; i < TILES * TILE_PIECES * 4; i++)
        in[i] = word_of(i / (TILE_PIECES * 4), i % (TILE_PIECES * 4));
    const int words = s->expected(expected);

    wait_data   d = {};
    CUtensorMap map = {};
    check(cudaMalloc((void **)&d.in, sizeof in), "memory");
    check(cudaMalloc((void **)&d.out, sizeof out), "memory");
    check(cudaMalloc((void **)&d.work, sizeof out), "memory");
    check(cudaMalloc((void **)&d.count, sizeof *d.count), "memory");
    check(cudaMemcpy((void *)d.in, in, sizeof in, cudaMemcpyHostToDevice), "copy");
    check(cudaMemset(d.out, 0, sizeof out), "memset");
    check(cudaMemset(d.count, 0, sizeof *d.count), "memset");
    tensor_map_encode *encode = tensor_map_encoder();
    if (!encode || !tensor_map_rows(encode, d.in, 128, 1, &map))
        return 77;
    s->form[form](d, map);
    check(cudaGetLastError(), "launch");
    check(cudaDeviceSynchronize(), "kernel");
    check(cudaMemcpy(out, d.out, sizeof out, cudaMemcpyDeviceToHost), "copy");
    for (int i = 0; i < words; i++)
        wrong += out[i] != expected[i];
    if (wrong)
        printf("results: wrong (%d of %d words)\n", wrong, words);
    else
        printf("results: right\n");
    return 0;
}
