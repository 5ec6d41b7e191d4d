#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <sys/stat.h>
#include "base.h"
#include "fake.h"
#include "jobfile.h"

static char why[1024];

/* The file as "[section] name=value@line ..." with [global] first, or the error. */
static const char *read_text(const char *content, size_t length)
{
    static char    ret[4096];
    struct jobfile job = {0};
    char          *p = ret;
    if (jobfile_parse("a.ini", content, length, &job, why, sizeof why)) {
        jobfile_free(&job);
        return why;
    }
    *p = 0;
    for (int s = -1; s < job.n; s++) {
        const struct job_section *section = s < 0 ? &job.global : &job.section[s];
        if (s >= 0) p += sprintf(p, "%s[%s]@%d", p > ret ? " " : "", section->name, section->line);
        for (int k = 0; k < section->n; k++)
            p += sprintf(p, "%s%s=%s@%d", p > ret ? " " : "", section->key[k].name, section->key[k].value, section->key[k].line);
    }
    jobfile_free(&job);
    return ret;
}

static const char *read_words(const char *content)
{
    return read_text(content, strlen(content));
}

static void test_grammar(void **state)
{
    (void)state;
    assert_string_equal(read_words(""), "");
    assert_string_equal(read_words("# nothing\n; here\n\n"), "");
    assert_string_equal(read_words("[a]\nbatch = 1\n"), "[a]@1 batch=1@2");
    assert_string_equal(read_words("[a]\nbatch = 1"), "[a]@1 batch=1@2");
    assert_string_equal(read_words("\xef\xbb\xbf[a]\r\nbatch = 1\r\n"), "[a]@1 batch=1@2");
    assert_string_equal(read_words("[global]\nctx = 8K\n[a]\nbatch=1,2\n\n[b]\nkernels = x/*\n"),
        "ctx=8K@2 [a]@3 batch=1,2@4 [b]@6 kernels=x/*@7");
    assert_string_equal(read_words("[a]   # why\nbatch = 1:8:*2 ; because\nctx = 4 # so\n"), "[a]@1 batch=1:8:*2@2 ctx=4@3");
    /* An indented line is a key of its own, not the rest of the one before. */
    assert_string_equal(read_words("[a]\n  batch = 1\n    ctx = 2\n"), "[a]@1 batch=1@2 ctx=2@3");
    assert_string_equal(read_words("[a]\nskip = batch>8 ctx>=8K\nskip = batch=1\nzip = batch,ctx\nzip = a,b\n"),
        "[a]@1 skip=batch>8 ctx>=8K@2 skip=batch=1@3 zip=batch,ctx@4 zip=a,b@5");
    assert_string_equal(read_words("[global]\nctx = 1\n[a]\nb = 1\n[global]\nbatch = 2\n"), "ctx=1@2 batch=2@6 [a]@3 b=1@4");
    assert_string_equal(read_words("[64 heads]\nb = 1\n"), "[64 heads]@1 b=1@2");
}

static void test_refusals(void **state)
{
    static const char *const cases[][2] = {
        {"batch = 1\n", "a.ini:1: batch: stands before the first section; put it into [global]"},
        {"\n[a\nbatch = 1\n", "a.ini:2: [a: ']' is missing at its end"},
        {"[", "a.ini:1: [: ']' is missing at its end"},
        {"[a] b\nbatch = 1\n", "a.ini:1: [a] b: ']' is missing at its end"},
        {"[]\nbatch = 1\n", "a.ini:1: section: has no name"},
        {"[a]\n\n[b]\nx = 1\n", "a.ini:1: section: no key follows; say which kernels and sizes, or remove it"},
        {"[b]\nx = 1\n[a]\n", "a.ini:3: section: no key follows; say which kernels and sizes, or remove it"},
        {"[a]\nbatch = 1\n[b]\nx = 1\n[a]\nctx = 2\n", "a.ini:5: a: a section of that name stands at a.ini:1"},
        {"[a]\nbatch = 1\nctx = 1\nbatch = 2\n", "a.ini:4: batch: is there twice; it stands at line 2, too"},
        {"[global]\nctx = 1\nctx = 1\n", "a.ini:3: ctx: is there twice; it stands at line 2, too"},
        {"[a]\nbatch 1\n", "a.ini:2: line: neither [section] nor key = value"},
        {"[a]\nbatch =\n", "a.ini:2: batch: the value is missing"},
        {"[a]\n= 1\n", "a.ini:2: 1: the key before '=' is missing"},
        {"[a]\ninclude = b.ini\n", "a.ini:2: include: belongs into [global]"},
        {"[a-section-of-a-name-that-is-longer-than-inih-takes-it]\nb = 1\n",
            "a.ini:1: section: its name is longer than 47 characters"},
    };
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) assert_string_equal(read_words(cases[i][0]), cases[i][1]);
    assert_string_equal(read_text("[a]\nb = 1\0 2\n", 13), "a.ini:2: line: holds a NUL byte; this is no text file");
}

/* The INI reader cuts what its buffer can't hold; here that's an error, at one character more than fits. */
static void test_long_lines(void **state)
{
    char content[700];
    int  length = 0;
    (void)state;
    for (length = 100; length < 600; length++) {
        int n = sprintf(content, "[a]\nbatch = ");
        while (n < 4 + length) content[n++] = '1';
        strcpy(content + n, "\n");
        if (strchr(read_words(content), ':')) break;
        assert_int_equal(strlen(read_words(content)), strlen("[a]@1 batch=@2") + (size_t)length - strlen("batch = "));
    }
    assert_in_range(length, 150, 599);
    assert_non_null(strstr(read_words(content), "a.ini:2: line: longer than "));
    memset(content + 4, '#', (size_t)length);                        /* a comment may be as long as it likes */
    memcpy(content + 4, "b = 1 ", 6);
    assert_string_equal(read_words(content), "[a]@1 b=1@2");
}

static void write_file(const char *path, const char *content)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(content, f);
    fclose(f);
}

static void test_include(void **state)
{
    char           folder[] = "/tmp/kbench-test-XXXXXX", main_path[64], common[64], want[256];
    struct jobfile job = {0};
    (void)state;
    assert_non_null(mkdtemp(folder));
    sprintf(main_path, "%s/main.ini", folder);
    sprintf(common, "%s/sub", folder);
    assert_int_equal(mkdir(common, 0700), 0);
    sprintf(common, "%s/sub/common.ini", folder);
    write_file(main_path, "[global]\nctx = 1\ninclude = sub/common.ini\nbatch = 7\n[a]\nx = 1\n");
    write_file(common, "[global]\nbatch = 2\ntopk = 3\n[inner]\nx = 2\n");
    assert_int_equal(jobfile_read(main_path, &job, why, sizeof why), 0);
    assert_int_equal(job.n, 2);
    assert_string_equal(job.section[0].name, "inner");
    assert_string_equal(job.section[0].file, common);
    assert_string_equal(job.section[1].name, "a");
    assert_string_equal(job_find(&job.global, "batch")->value, "7");   /* the includer's word, which stands later */
    assert_string_equal(job_find(&job.global, "topk")->value, "3");
    assert_null(job_find(&job.global, "heads"));
    jobfile_free(&job);

    write_file(common, "[global]\ninclude = ../main.ini\n");
    assert_int_equal(jobfile_read(main_path, &job, why, sizeof why), 1);
    sprintf(want, "%s:2: include: %s/sub/../main.ini: includes itself in the end", common, folder);
    assert_string_equal(why, want);
    jobfile_free(&job);

    write_file(common, "[global]\nbatch 2\n");
    assert_int_not_equal(jobfile_read(main_path, &job, why, sizeof why), 0);
    sprintf(want, "%s:2: line: neither [section] nor key = value", common);
    assert_string_equal(why, want);
    jobfile_free(&job);

    unlink(common);
    assert_int_not_equal(jobfile_read(main_path, &job, why, sizeof why), 0);
    sprintf(want, "%s:3: include: %s: can't be read: No such file or directory", main_path, common);
    assert_string_equal(why, want);
    jobfile_free(&job);

    assert_int_not_equal(jobfile_read(folder, &job, why, sizeof why), 0);
    sprintf(want, "%s: can't be read: not a regular file", folder);
    assert_string_equal(why, want);
    jobfile_free(&job);
    unlink(main_path);
    sprintf(common, "%s/sub", folder);
    rmdir(common), rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grammar),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_include),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
