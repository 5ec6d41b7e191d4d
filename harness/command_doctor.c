/* `doctor`: what this machine has and can do, and what is missing, in words. */
#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base.h"
#include "calibrate.h"
#include "commands.h"
#include "devices/library.h"
#include "floors.h"
#include "format.h"
#include "lock.h"
#include "report.h"
#include "runfolder.h"
#include "supervisor.h"
#include "sweep.h"
#include "version.h"

enum { WIDTH = 80 };

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    if (interrupted) _exit(128 + number);
    interrupted = number;
}

struct library {
    const char *what, *for_what, *names[6];
};

static const struct library libraries[] = {
    {"CUDA driver", "the cuda engine", {"libcuda.so.1"}},
    {"NVML", "clocks, power and driver version in env.json", {"libnvidia-ml.so.1"}},
    {"cuBLASLt", "the matrix ceiling and library kernels", {"libcublasLt.so.13", "libcublasLt.so.12",
        "/usr/local/cuda/lib64/libcublasLt.so"}},
    {"CUPTI", "breakdowns and counters (kbench profile)", {CUPTI_LIBRARIES}},
    {"NCCL", "several GPUs", {"libnccl.so.2"}},
};

static void show_libraries(FILE *out)
{
    for (int i = 0; i < COUNT(libraries); i++) {
        void *handle = NULL;
        for (int n = 0; n < COUNT(libraries[i].names) && libraries[i].names[n] && !handle; n++)
            handle = dlopen(libraries[i].names[n], RTLD_LAZY | RTLD_LOCAL);
        fprintf(out, "  %-12s  %-9s  %s\n", libraries[i].what, handle ? "found" : "not found", libraries[i].for_what);
        if (handle) dlclose(handle);
    }
}

/* First line of what a program says of its version; runs it without a shell's help from anybody's input. */
static void show_program(FILE *out, const char *name, const char *command, const char *for_what)
{
    char line[128] = "";
    FILE *pipe = popen(command, "r");
    if (pipe && !fgets(line, sizeof line, pipe)) *line = 0;
    if (pipe) pclose(pipe);
    line[strcspn(line, "\n")] = 0;
    fprintf(out, "  %-12s  %-9s  %s\n", name, *line ? "found" : "not found", *line ? line : for_what);
}

static void show_line(FILE *out, const char *words)
{
    fputs("  ", out);
    wrap_words(out, WIDTH, 2, 4, words);
}

static void show_spins(FILE *out, const struct machine *m)
{
    char words[400];
    int wrong = spins_wrong(m->spin_ns);
    size_t n = strlen(text(words, sizeof words, "timer check:"));
    for (int i = 0; i < SPINS; i++) {
        char asked[24], read[24];
        n += strlen(text(words + n, sizeof words - n, "%s spin of %s reads %s", i ? "," : "",
            ns_text(spin_asked_ns[i], asked, sizeof asked), ns_text(m->spin_ns[i], read, sizeof read)));
    }
    show_line(out, words);
    if (wrong)
        show_line(out, text(words, sizeof words, "timer WRONG: %d of %d are off by more than 5 %% and 0.1 us; is the machine busy?",
            wrong, SPINS));
    else show_line(out, "timer right: all within 5 % or 0.1 us");
    fputc('\n', out);
}

static void show_machine(FILE *out, const struct machine *m)
{
    struct report_options options = {.width = WIDTH};
    char floor[24], event[24], latency[24], words[300];
    report_machine(out, m, &options);
    show_line(out, m->features);
    show_line(out, text(words, sizeof words, "timer floors: empty kernel %s as rows are timed, %s %s; one block's latency %s",
        ns_text(m->ceilings.floor_ns, floor, sizeof floor), m->engine == CUDA ? "between two events" : "resolution of the clock",
        ns_text(m->ceilings.event_ns, event, sizeof event), ns_text(m->ceilings.latency_ns, latency, sizeof latency)));
    show_spins(out, m);
}

/* What env.json says of the machine; malloc'ed. */
static char *machine_json(const struct cli *cli, const struct machine *machine)
{
    struct env env = {.command = cli->command_line, .machine = machine};
    return env_json(&env);
}

/* False: there is no such engine here. *ret_code: touched where something is amiss. */
static bool show_engine(FILE *out, struct cli *cli, const char *device, int *ret_code)
{
    struct supervisor sv;
    struct lock lock = {.fd = -1};
    struct cli one = *cli;
    one.device = device;
    one.wrap = NULL;
    supervisor_open(&sv, &one, NULL, &interrupted);
    bool there = strcmp(device, "auto") || sv.hello.machine.engine == CUDA;
    struct registry registry = registry_open(0, NULL);
    struct plan plan = {.n = 0};
    if (there && cli->floors) plan = sweep_plan(&one, &registry, &sv.hello.machine);   /* before anything is measured: it may die */
    if (there && lock_device(&lock, cli, &sv.hello.machine, &interrupted)) supervisor_measure(&sv);
    char *json = NULL;
    if (there && !interrupted) {
        if (cli->json) json = machine_json(cli, &sv.hello.machine);
        else show_machine(out, &sv.hello.machine);
    } else if (!interrupted && !cli->json) {
        wrap_words(out, WIDTH, fprintf(out, "no cuda engine: "), 4, sv.hello.why_not_cuda);
        fputc('\n', out);
    }
    bool wrong = spins_wrong(sv.hello.machine.spin_ns);   /* a later worker says nothing of it */
    if (there && !interrupted && cli->floors) *ret_code = floors_run(&sv, &one, &registry, &plan, json, &interrupted);
    else if (json) fputs(json, out);
    free(json);
    plan_free(&plan);
    if (there && !interrupted && wrong && !*ret_code) *ret_code = EXIT_INCONCLUSIVE;
    supervisor_close(&sv);
    lock_drop(&lock);
    return there;
}

int command_doctor(struct cli *cli)
{
    bool chosen = cli->device && strcmp(cli->device, "auto");
    int code = EXIT_OK;
    if (!cli->floors && (cli->kernels.n || cli->axes.n))
        die(EXIT_USAGE, "doctor: -k and -a choose rows for --floors; without it there are none");
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    if (!cli->json) printf("kbench %s\n\n", KBENCH_VERSION);
    bool cuda = !chosen && show_engine(stdout, cli, "auto", &code);
    if (!(cuda && (cli->json || cli->floors)) && !interrupted) show_engine(stdout, cli, chosen ? cli->device : "host", &code);
    if (interrupted) return 128 + interrupted;
    if (cli->floors || cli->json) return code;
    printf("libraries opened at run time\n");
    show_libraries(stdout);
    printf("programs\n");
    show_program(stdout, "gnuplot", "gnuplot --version 2>/dev/null", "plots; apt-get install gnuplot-nox");
    show_program(stdout, "nvcc", "nvcc --version 2>/dev/null | grep release",
        "building CUDA kernels; the CUDA toolkit, 12.4 or newer");
    show_program(stdout, "ncu", "ncu --version 2>/dev/null | tail -n 1", "kbench check --row ... --wrap 'ncu ...'");
    show_program(stdout, "nsys", "nsys --version 2>/dev/null | tail -n 1", "kbench check --row ... --wrap 'nsys profile ...'");
    show_program(stdout, "sanitizer", "compute-sanitizer --version 2>/dev/null | head -n 1",
        "kbench check --row ... --wrap compute-sanitizer");
    return code;
}
