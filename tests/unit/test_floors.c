/* Noise floors in words and as a file: what was measured with its sign, what was not as nothing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "base.h"
#include "floors_text.h"
#include "noise_floors.h"

static struct floor floor_of(const char *kernel, double pct, double first, double second, double loaded, double after)
{
    struct floor ret = {.n = 1, .ratio = {1 + pct / 100}, .pct = pct, .loaded = {.ns = {first, second, loaded, after}}};
    row_clear(&ret.row);
    text(ret.row.op, sizeof ret.row.op, "mix");
    text(ret.row.kernel, sizeof ret.row.kernel, "%s", kernel);
    return ret;
}

static void words_of_worst(const struct floor *floor, int n, const char *why, char *ret, size_t size)
{
    memset(ret, 0, size);
    FILE *out = fmemopen(ret, size, "w");
    floors_worst(out, floor, n, why);
    fclose(out);
}

static void against_the_block_before(void **state)
{
    (void)state;
    struct floor floor = floor_of("mix/a", 0.1, 1000, 1010, 1015.05, 1005.96);
    assert_true(fabs(floor_again_pct(&floor) - 1) < 1e-9);
    assert_true(fabs(floor_loaded_pct(&floor) - 0.5) < 1e-9);
    assert_true(fabs(floor_traced_pct(&floor) + 0.4) < 1e-9);
    floor.loaded.ns[LOADED_TRACED] = NAN;
    assert_true(isnan(floor_traced_pct(&floor)) && !isnan(floor_loaded_pct(&floor)) && !isnan(floor_again_pct(&floor)));
}

static void worst_with_its_sign(void **state)
{
    (void)state;
    char words[600];
    struct floor floor[] = {floor_of("mix/a", 0.2, 1000, 1001, 1003.003, 1002),
        floor_of("mix/b", 0.1, 1000, 1000, 1001, 997), floor_of("mix/c", 0.3, NAN, NAN, NAN, NAN)};
    words_of_worst(floor, 3, "", words, sizeof words);
    assert_string_equal(words, "worst: 0.300 % (mix/c)\nworst again: +0.100 % (mix/a)\nworst loaded: +0.200 % (mix/a)\n"
        "worst traced: -0.300 % (mix/b)\n");
    words_of_worst(floor, 3, "no CUPTI", words, sizeof words);
    assert_non_null(strstr(words, "worst traced: -0.300 % (mix/b)\n"));
    assert_non_null(strstr(words, "\ntracer: not measured of all: no CUPTI\n"));
    words_of_worst(&floor[2], 1, "no CUPTI", words, sizeof words);
    assert_string_equal(words, "worst: 0.300 % (mix/c)\ntracer: not measured: no CUPTI\n");
    words_of_worst(floor, 0, "", words, sizeof words);
    assert_string_equal(words, "");
}

static void file_has_null_for_nothing(void **state)
{
    (void)state;
    struct machine machine = {.name = "H200", .uuid = "GPU-1"};
    struct floor floor[] = {floor_of("mix/a", 0.2, 1000, 1000, 1001, 1002), floor_of("mix/b", 0.1, 1000, 1000, NAN, NAN)};
    char *json = floors_json(&machine, floor, 2, "held");
    cJSON *root = cJSON_Parse(json), *rows = cJSON_GetObjectItem(root, "rows");
    const cJSON *a = cJSON_GetArrayItem(rows, 0), *b = cJSON_GetArrayItem(rows, 1);
    assert_true(fabs(cJSON_GetNumberValue(cJSON_GetObjectItem(a, "loaded_pct")) - 0.1) < 1e-9);
    assert_true(fabs(cJSON_GetNumberValue(cJSON_GetObjectItem(a, "traced_pct")) - 0.2) < 1e-9);
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(a, "again_pct")) == 0);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(b, "loaded_pct")) && cJSON_IsNull(cJSON_GetObjectItem(b, "traced_pct")));
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(root, "loaded_why")), "held");
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(root, "schema")) == 2);
    struct noise_floors floors = {0};
    assert_int_equal(noise_floors_parse(json, "H200", &floors), 0);   /* what a gate takes of it is the floor, as ever */
    assert_int_equal(floors.n, 2);
    assert_true(floors.of[0].pct == 0.2 && floors.of[1].pct == 0.1);
    noise_floors_free(&floors);
    cJSON_Delete(root);
    free(json);
    json = floors_json(&machine, floor, 1, "");
    root = cJSON_Parse(json);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(root, "loaded_why")));
    cJSON_Delete(root);
    free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_the_block_before), cmocka_unit_test(worst_with_its_sign),
        cmocka_unit_test(file_has_null_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
