/* Runs one style in one form and says whether its results are right; ../waits.py holds NVIDIA's sanitizers against all of them.
 * usage: waits                 a line for each style and form, as CSV: what is handed on, which wait the form lacks, a note
 *        waits STYLE FORM      FORM: right, early, reused; prints 'results: right' or 'results: wrong (N of M words)'
 * Exit 0 in both cases, 2: no such style or form, 5: CUDA failed, 77: not for this GPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "block.cuh"
#include "bulk.cuh"
#include "expect.cuh"
#include "lane.cuh"
#include "merge.cuh"
#include "places.cuh"

static void check(cudaError_t error, const char *what) {
    if (!error)
        return;
    fprintf(stderr, "waits: %s: %s\n", what, cudaGetErrorString(error));
    exit(5);
}

/* Tensor maps of a launch's data. */
struct wait_maps {
    CUtensorMap in, work;
};
typedef void launch(const wait_data &d, const wait_maps &maps);

template <int FORM> static void launch_ring(const wait_data &d, const wait_maps &) { wait_ring<FORM><<<1, READERS>>>(d); }
template <int FORM> static void launch_own(const wait_data &d, const wait_maps &) { wait_ring_own<FORM><<<1, READERS>>>(d); }
template <int FORM> static void launch_barrier(const wait_data &d, const wait_maps &) {
    wait_ring_barrier<FORM><<<1, READERS + WARP>>>(d);
}
template <int FORM> static void launch_line(const wait_data &d, const wait_maps &maps) {
    wait_bulk<FORM, false><<<1, READERS + WARP>>>(d, maps.in);
}
template <int FORM> static void launch_tensor(const wait_data &d, const wait_maps &maps) {
    wait_bulk<FORM, true><<<1, READERS + WARP>>>(d, maps.in);
}
template <int FORM> static void launch_publish(const wait_data &d, const wait_maps &) { wait_publish<FORM><<<1, READERS>>>(d); }
template <int FORM> static void launch_sums(const wait_data &d, const wait_maps &) { wait_sums<FORM><<<1, READERS>>>(d); }
template <int FORM> static void launch_products(const wait_data &d, const wait_maps &maps) {
    wait_products<FORM><<<1, READERS + WARP>>>(d, maps.in);
}
template <int FORM> static void launch_block(const wait_data &d, const wait_maps &) {
    wait_block<FORM, false><<<1, READERS>>>(d);
}
template <int FORM> static void launch_named(const wait_data &d, const wait_maps &) {
    wait_block<FORM, true><<<1, READERS + WARP>>>(d);
}
template <int FORM> static void launch_warp(const wait_data &d, const wait_maps &) { wait_warp<FORM><<<1, WARP>>>(d); }
template <int FORM> static void launch_ticket(const wait_data &d, const wait_maps &) {
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
static void launch_pair(void (*kernel)(wait_data), const wait_data &d, unsigned pairs = 1) {
    cudaLaunchAttribute shape = {};
    shape.id = cudaLaunchAttributeClusterDimension;
    shape.val.clusterDim.x = 2;
    shape.val.clusterDim.y = shape.val.clusterDim.z = 1;
    const cudaLaunchConfig_t how = config_of(2 * pairs, &shape);
    check(cudaLaunchKernelEx(&how, kernel, d), "launch");
}
template <int FORM> static void launch_cluster(const wait_data &d, const wait_maps &) { launch_pair(wait_cluster<FORM>, d); }
template <int FORM> static void launch_merge(const wait_data &d, const wait_maps &) {
    launch_pair(wait_merge<FORM, false>, d, MERGE_PAIRS);
}
template <int FORM> static void launch_merge_product(const wait_data &d, const wait_maps &) {
    launch_pair(wait_merge<FORM, true>, d, MERGE_PAIRS);
}
template <int FORM> static void launch_merge_taken(const wait_data &d, const wait_maps &) {
    launch_pair(wait_taken<FORM>, d, MERGE_PAIRS);
}

/* A block that may begin before the kernel before it has ended. */
static void launch_early(void (*kernel)(wait_data), const wait_data &d) {
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    const cudaLaunchConfig_t how = config_of(1, &early);
    check(cudaLaunchKernelEx(&how, kernel, d), "launch");
}
template <int FORM> static void launch_dependent(const wait_data &d, const wait_maps &) {
    wait_parts<<<GRID_BLOCKS, READERS>>>(d);
    launch_early(wait_dependent<FORM>, d);
}
template <int FORM, bool TENSOR> static void launch_stored_by(const wait_data &d, const wait_maps &maps) {
    wait_stored<FORM, TENSOR><<<1, READERS>>>(d, maps.work);
    if (FORM == EARLY)
        launch_early(wait_load, d);
    else
        wait_load<<<1, READERS>>>(d);
}
template <int FORM> static void launch_stored(const wait_data &d, const wait_maps &maps) { launch_stored_by<FORM, false>(d, maps); }
template <int FORM> static void launch_stored_tensor(const wait_data &d, const wait_maps &maps) {
    launch_stored_by<FORM, true>(d, maps);
}

template <int FORM> static void launch_lane(const wait_data &d, const wait_maps &) { wait_lane<FORM, 1><<<1, 2 * READERS>>>(d); }
template <int FORM> static void launch_lanes(const wait_data &d, const wait_maps &) {
    wait_lane<FORM, WARP><<<1, 2 * READERS>>>(d);
}
template <int FORM> static void launch_init(const wait_data &d, const wait_maps &) { wait_init<FORM, true><<<1, READERS>>>(d); }
template <int FORM> static void launch_init_one(const wait_data &d, const wait_maps &) {
    wait_init<FORM, false><<<1, READERS>>>(d);
}
template <int FORM> static void launch_places(const wait_data &d, const wait_maps &) {
    wait_places<FORM, false><<<1, READERS>>>(d);
}
template <int FORM> static void launch_places_counted(const wait_data &d, const wait_maps &) {
    wait_places<FORM, true><<<1, READERS>>>(d);
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
    {"stored", {"workspace that cp.async.bulk writes", "griddepcontrol.wait", "cp.async.bulk.wait_group.read"}, expect_stored,
        FORMS(stored), false},
    {"stored_tensor", {"workspace that cp.async.bulk.tensor writes", "griddepcontrol.wait", "cp.async.bulk.wait_group.read"},
        expect_stored, FORMS(stored_tensor), false},
    {"lane", {"shared memory, a lane of a warp arrives behind __syncwarp", "mbarrier wait for full", "release after the reads"},
        expect_block, FORMS(lane), false},
    {"lanes", {"shared memory, all lanes of a warp arrive", "mbarrier wait for full", "release after the reads"}, expect_block,
        FORMS(lanes), false},
    {"merge", {"what copies filled, then stored by another block", "barrier.cluster before the reads",
        "barrier.cluster before the stores"}, expect_merge_read, FORMS(merge), false},
    {"merge_product", {"what copies filled and wgmma read, then stored by another block", "barrier.cluster before the reads",
        "barrier.cluster before the stores"}, expect_merge_product, FORMS(merge_product), true},
    {"merge_taken", {"what wgmma read, then stored over and read by another block", "barrier.cluster before the reads",
        "barrier.cluster after the reads"}, expect_merge_product, FORMS(merge_taken), true},
    {"init", {"mbarriers made by a thread each", "__syncthreads after mbarrier.init", "mbarrier.inval before another init"},
        expect_phases, FORMS(init), false},
    {"init_one", {"mbarriers made by one thread behind a branch", "__syncthreads after mbarrier.init",
        "mbarrier.inval before another init"}, expect_phases, FORMS(init_one), false},
    {"places", {"shared memory of a block that meets from two places", "__syncthreads before the reads",
        "__syncthreads after the reads"}, expect_block, FORMS(places), false},
    {"places_counted", {"shared memory of warps that meet from two places", "bar.sync before the reads",
        "bar.sync after the reads"}, expect_block, FORMS(places_counted), false},
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
    wait_maps   maps = {};
    check(cudaMalloc((void **)&d.in, sizeof in), "memory");
    check(cudaMalloc((void **)&d.out, sizeof out), "memory");
    check(cudaMalloc((void **)&d.work, sizeof out), "memory");
    check(cudaMalloc((void **)&d.count, sizeof *d.count), "memory");
    check(cudaMemcpy((void *)d.in, in, sizeof in, cudaMemcpyHostToDevice), "copy");
    check(cudaMemset(d.out, 0, sizeof out), "memset");
    check(cudaMemset(d.count, 0, sizeof *d.count), "memset");
    tensor_map_encode *encode = tensor_map_encoder();
    if (!encode || !tensor_map_rows(encode, d.in, 128, 1, &maps.in) || !tensor_map_rows(encode, d.work, 128, 1, &maps.work))
        return 77;
    s->form[form](d, maps);
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
