/* The ranges that kernels push, as the breakdown sees them: of plug-ins, too, whatever they leave behind. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base.h"
#include "nvtx.h"
#include "pushes.h"
#include "registry.h"

static char *plugin, *library;

static void look(struct pushes *p)
{
    assert_true(p->n < COUNT(p->seen));
    text(p->seen[p->n++], sizeof p->seen[0], "%s", nvtx_innermost());
}

static const struct kernel *opened(struct registry *r)
{
    *r = registry_open(1, &plugin);
    const struct entry *entry = registry_find(r, "plugin/pushes");
    assert_non_null(entry);
    return entry->kernel;
}

static void launched(const struct kernel *kernel, struct pushes *p)
{
    p->look = look;
    p->n = 0;
    assert_int_equal(kernel->launch(&(struct call){.state = p}), 0);
}

static void saw_its_phases(const struct pushes *p)
{
    static const char *const phases[] = {"scores", "top ? 512", "scores", "combine", "registered", ""};
    for (int i = 0; i < COUNT(phases); i++) assert_string_equal(p->seen[i], phases[i]);
}

static void of_a_plug_in(void **state)
{
    struct registry r;
    struct pushes p = {0};
    const struct kernel *kernel = opened(&r);
    (void)state;
    launched(kernel, &p);
    saw_its_phases(&p);
    assert_string_equal(p.seen[6], "");
    nvtx_push("plugin/pushes batch=1");   /* by which the harness names what runs: no phase of the kernel's */
    assert_string_equal(nvtx_innermost(), "");
    launched(kernel, &p);
    saw_its_phases(&p);
    assert_string_equal(p.seen[6], "");
    nvtx_pop();
}

/* One kernel's mistakes are not the next one's. */
static void unbalanced(void **state)
{
    static const struct pushes mistakes[] = {{.pop_more = 1}, {.pop_more = 20}, {.leave_open = 1}, {.leave_open = 40}};
    struct registry r;
    const struct kernel *kernel = opened(&r);
    (void)state;
    for (int i = 0; i < COUNT(mistakes); i++) {
        struct pushes p = mistakes[i], next = {0};
        nvtx_push("first");
        launched(kernel, &p);
        saw_its_phases(&p);
        assert_string_equal(p.seen[6], p.leave_open ? "left open" : "");
        nvtx_pop();
        assert_string_equal(nvtx_innermost(), "");
        nvtx_push("second");
        assert_string_equal(nvtx_innermost(), "");
        launched(kernel, &next);
        saw_its_phases(&next);
        nvtx_pop();
    }
}

/* Libraries that kernels call have ranges of their own, which are no phases. */
static void of_a_library(void **state)
{
    struct pushes p = {0};
    (void)state;
    void *object = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    const struct kernel *kernel = object ? dlsym(object, "no_plugin") : NULL;
    assert_non_null(kernel);
    launched(kernel, &p);
    for (int i = 0; i < p.n; i++) assert_string_equal(p.seen[i], "");
    dlclose(object);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_a_plug_in), cmocka_unit_test(unbalanced),
        cmocka_unit_test(of_a_library)};
    if (argc < 3) return print_error("usage: test_nvtx PUSHES.so NO_PLUGIN.so\n"), 1;
    plugin = argv[1], library = argv[2];
    nvtx_listen();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
