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
    struct floor ret = {.n = 1, .ratio = {1 + pct / 100}, .pct = pct, .loaded = {.ns = {first, second, second, loaded, after}}};
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

static void against_the_run_before(void **state)
{
    (void)state;
    struct floor floor = floor_of("mix/a", 0.1, 1000, 1010, 1015.05, 1005.96);
    assert_true(fabs(floor_again_pct(&floor) - 1) < 1e-9);
    assert_true(fabs(floor_loaded_pct(&floor) - 0.5) < 1e-9);
    assert_true(fabs(floor_traced_pct(&floor) + 0.4) < 1e-9);
    assert_true(floor_gone_pct(&floor) == 0);
    floor.loaded.ns[LOADED_GONE] = 1000;      /* by turns with these, whatever the runs before were like */
    assert_true(fabs(floor_loaded_pct(&floor) - 1.505) < 1e-9);
    assert_true(fabs(floor_gone_pct(&floor) + 100 - 1e5 / 1010) < 1e-9);
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
        "worst gone: +0.000 % (mix/a)\nworst traced: -0.300 % (mix/b)\n");
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
    char *json = floors_json(&machine, floor, 2, "held", NULL);
    cJSON *root = cJSON_Parse(json), *rows = cJSON_GetObjectItem(root, "rows");
    const cJSON *a = cJSON_GetArrayItem(rows, 0), *b = cJSON_GetArrayItem(rows, 1);
    assert_true(fabs(cJSON_GetNumberValue(cJSON_GetObjectItem(a, "loaded_pct")) - 0.1) < 1e-9);
    assert_true(fabs(cJSON_GetNumberValue(cJSON_GetObjectItem(a, "traced_pct")) - 0.2) < 1e-9);
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(a, "again_pct")) == 0);
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(a, "gone_pct")) == 0);
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
    json = floors_json(&machine, floor, 1, "", NULL);
    root = cJSON_Parse(json);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(root, "loaded_why")));
    cJSON_Delete(root);
    free(json);
}

#define ROW(kernel, dims, more) "{\"op\": \"mix\", \"kernel\": \"" kernel "\", \"dims\": {" dims "}, \"tune\": \"\", " \
    "\"cache\": \"\", \"floor_pct\": 0.5, \"again_pct\": 0.25, \"loaded_pct\": 3, " more "}"
#define FILE_OF(schema, why, rows) "{\"schema\": " schema ", \"device\": \"H200\", \"uuid\": \"GPU-1\", \"loaded_why\": " why \
    ", \"rows\": [" rows "]}"
#define ODD "\"ratios\": [1.0000000000000002, 0.9999704050379248], \"disturbed\": 2, \"later\": {\"big\": 123456789012345}"

static const struct machine h200 = {.name = "H200", .uuid = "GPU-1"};

/* The rows of the file that joins the floors with an earlier one; ret_root is the caller's. */
static cJSON *joined(const struct floor *floor, int n, const char *why, const char *earlier, cJSON **ret_root)
{
    char words[300];
    assert_true(floors_whole(earlier, &h200, words, sizeof words));
    assert_string_equal(words, "");
    char *json = floors_json(&h200, floor, n, why, earlier);
    struct noise_floors floors = {0};
    assert_int_equal(noise_floors_parse(json, "H200", &floors), 0);
    *ret_root = cJSON_Parse(json);
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(*ret_root, "schema")) == 2);
    cJSON *rows = cJSON_GetObjectItem(*ret_root, "rows");
    assert_int_equal(floors.n, cJSON_GetArraySize(rows));
    noise_floors_free(&floors);
    free(json);
    return rows;
}

static double number(const cJSON *rows, int i, const char *key)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItem(cJSON_GetArrayItem(rows, i), key));
}

static const char *word(const cJSON *rows, int i, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(rows, i), key));
}

static void earlier_rows_stay(void **state)
{
    (void)state;
    const char *earlier = FILE_OF("2", "null", ROW("mix/a", "", ODD) "," ROW("mix/b", "", ODD) ","
        ROW("mix/b", "\"ctx\": 8", ODD));
    struct floor floor[] = {floor_of("mix/c", 0.125, 1000, 1000, 1001, 1002), floor_of("mix/b", 0.25, 1000, 1000, 1001, 1002),
        floor_of("mix/a", 0.25, 1000, 1000, 1001, 1002)};
    floor[2].n = 0;      /* timed in vain: what was known of it holds */
    cJSON *root, *rows = joined(floor, 3, "", earlier, &root);
    const char *const kernel[] = {"mix/a", "mix/b", "mix/b", "mix/c"};
    const double pct[] = {0.5, 0.25, 0.5, 0.125}, loaded[] = {3, 0.1, 3, 0.1};
    assert_int_equal(cJSON_GetArraySize(rows), 4);
    for (int i = 0; i < 4; i++) {
        assert_string_equal(word(rows, i, "kernel"), kernel[i]);
        assert_true(number(rows, i, "floor_pct") == pct[i]);
        assert_true(fabs(number(rows, i, "loaded_pct") - loaded[i]) < 1e-9);
    }
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(root, "loaded_why")));
    cJSON *was = cJSON_Parse(ROW("mix/a", "", ODD));
    assert_true(cJSON_Compare(was, cJSON_GetArrayItem(rows, 0), true));
    cJSON_Delete(was);
    cJSON_Delete(root);
    char *json = floors_json(&h200, floor, 2, "", earlier);
    assert_non_null(strstr(json, "[1.0000000000000002, 0.9999704050379248]"));   /* which cJSON compares as 1, and prints so */
    free(json);
}

static void why_stays_with_its_rows(void **state)
{
    (void)state;
    struct floor floor[] = {floor_of("mix/b", 0.25, 1000, 1000, 1001, 1002), floor_of("mix/a", 0.25, 1000, 1000, 1001, 1002)};
    const char *earlier = FILE_OF("2", "\"no CUPTI\"",
        "{\"op\": \"mix\", \"kernel\": \"mix/a\", \"dims\": {}, \"tune\": \"\", \"cache\": \"\", "
        "\"floor_pct\": 1, \"loaded_pct\": null}");
    cJSON *root;
    joined(floor, 1, "", earlier, &root);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(root, "loaded_why")), "no CUPTI");
    cJSON_Delete(root);
    joined(floor, 1, "held", earlier, &root);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(root, "loaded_why")), "held");
    cJSON_Delete(root);
    joined(floor, 2, "", earlier, &root);      /* the row that it was said of is measured */
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(root, "loaded_why")));
    cJSON_Delete(root);
}

static void other_meaning_is_dropped(void **state)
{
    (void)state;
    struct floor floor = floor_of("mix/b", 0.25, 1000, 1000, 1001, 1002);
    cJSON *root, *rows = joined(&floor, 1, "", FILE_OF("1", "null", ROW("mix/a", "", ODD)), &root);
    const char *const null[] = {"again_pct", "loaded_pct", "traced_pct"};
    for (int i = 0; i < COUNT(null); i++) assert_true(cJSON_IsNull(cJSON_GetObjectItem(cJSON_GetArrayItem(rows, 0), null[i])));
    assert_true(number(rows, 0, "floor_pct") == 0.5 && number(rows, 0, "disturbed") == 2);
    assert_true(fabs(number(rows, 1, "loaded_pct") - 0.1) < 1e-9);
    assert_non_null(strstr(cJSON_GetStringValue(cJSON_GetObjectItem(root, "loaded_why")), "another meaning"));
    cJSON_Delete(root);
}

static void files_that_cannot_be_joined(void **state)
{
    (void)state;
    static const struct {
        const char *json, *why;
    } bad[] = {
        {"", "not what doctor --floors writes"}, {"[]", "not what doctor --floors writes"},
        {"{\"schema\": 2, \"device\": \"H200\", \"uuid\": \"GPU-1\", \"rows\": [{\"op\": \"mix\", ", "not what"},
        {"{\"schema\": 2, \"device\": \"H200\", \"rows\": []}", "not what"},
        {"{\"device\": \"H200\", \"uuid\": \"GPU-1\", \"rows\": []}", "not what"},
        {FILE_OF("2", "null", "{\"floor_pct\": 1}"), "not what"},
        {FILE_OF("3", "null", ""), "schema 3, known are 1 and 2"},
        {"{\"schema\": 2, \"device\": \"H100\", \"uuid\": \"GPU-1\", \"rows\": []}", "another device, H100 (GPU-1)"},
        {"{\"schema\": 2, \"device\": \"H200\", \"uuid\": \"GPU-2\", \"rows\": []}", "another device, H200 (GPU-2)"},
    };
    char why[300];
    for (int i = 0; i < COUNT(bad); i++) {
        assert_false(floors_whole(bad[i].json, &h200, why, sizeof why));
        assert_non_null(strstr(why, bad[i].why));
    }
}

static void beside_the_machine(void **state)
{
    (void)state;
    struct floor floor[] = {floor_of("mix/a", 0.25, 1000, 1000, 1001, 997), floor_of("mix/b", 0.5, NAN, NAN, NAN, NAN)};
    char *json = floors_beside("{\"read\": 1.0000000000000002, \"device\": {\"name\": \"H200\"}}", &h200, floor, 2, "held");
    assert_non_null(strstr(json, "1.0000000000000002"));
    cJSON *root = cJSON_Parse(json), *floors = cJSON_GetObjectItem(root, "floors"), *worst = cJSON_GetObjectItem(floors, "worst");
    assert_non_null(cJSON_GetObjectItem(cJSON_GetObjectItem(root, "device"), "name"));
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(floors, "rows")), 2);
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(worst, "floor_pct")) == 0.5);
    assert_true(fabs(cJSON_GetNumberValue(cJSON_GetObjectItem(worst, "traced_pct")) + 0.3) < 1e-9);
    cJSON_Delete(root);
    free(json);
    json = floors_beside("{}", &h200, &floor[1], 1, "held");
    root = cJSON_Parse(json);
    worst = cJSON_GetObjectItem(cJSON_GetObjectItem(root, "floors"), "worst");
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(worst, "loaded_pct")));
    cJSON_Delete(root);
    free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_the_run_before), cmocka_unit_test(worst_with_its_sign),
        cmocka_unit_test(file_has_null_for_nothing),
        cmocka_unit_test(earlier_rows_stay), cmocka_unit_test(why_stays_with_its_rows), cmocka_unit_test(other_meaning_is_dropped),
        cmocka_unit_test(files_that_cannot_be_joined), cmocka_unit_test(beside_the_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
