/* The tables of the command line. An option is one row here; parsing, --help, environment and --show-config are made from it. */
#include <stddef.h>

#include "base.h"
#include "cli_help.h"

#define AT(field) offsetof(struct cli, field)

const struct cli_command cli_commands[] = {
    {"list", "[ops|kernels|devices|sweeps|columns [FILE]|results]", "what there is to run, and what was run"},
    {"check", "[FILE.ini ...]", "right or wrong, no timing"},
    {"sweep", "[FILE.ini ...]", "check, time, write rows and plots; default: sweeps/default.ini"},
    {"plot", "RUN", "draw the plots of a run folder again"},
    {"report", "RUN", "the table of a run folder, for the terminal or as Markdown"},
    {"doctor", "", "engines, toolkit, libraries, timer floors, measured ceilings"},
    {"precision", "", "what bf16 and fp8 keys of the indexer cost: recall, change of attention"},
    {"gate", "FILE.ini [RUN]", "hold a run to ratios, and code to static limits; exit code for CI"},
    {"profile", "[FILE.ini ...]", "like sweep, and where each row's time goes: kernels, gaps, hardware counters"},
    {0},
};

enum { LIST = 1, CHECK = 2, SWEEP = 4, PLOT = 8, REPORT = 16, DOCTOR = 32, PRECISION = 64, GATE = 128, PROFILE = 256,
    TIMED = SWEEP | PROFILE, RUNS = CHECK | TIMED, ALL = 511 };

const struct cli_option cli_options[] = {
    {"kernel", 'k', "GLOB[,GLOB]", OPT_LIST, AT(kernels), 0, RUNS | DOCTOR, "kernels to run, as in 'attn/*'; repeatable"},
    {"skip", 0, "GLOB[,GLOB]", OPT_LIST, AT(skip_kernels), 0, RUNS, "kernels to leave out; repeatable"},
    {"first", 0, "GLOB[,GLOB]", OPT_LIST, AT(first), 0, RUNS, "kernels that lead their group: speed-up is over the first"},
    {"axis", 'a', "DIM=LIST", OPT_AXIS, AT(axes), 0, RUNS | PRECISION | DOCTOR,
        "values of a dimension: 1,16,64 or 8K:128K:*2 or 64:512:+64; repeatable"},
    {"zip", 0, "DIM,DIM", OPT_AXIS, AT(zips), 0, RUNS, "walk these axes together instead of crossing them"},
    {"tune", 't', "NAME=LIST", OPT_AXIS, AT(tunes), 0, RUNS,
        "values of a kernel's tunable, as in splits=1:16:*2; repeatable"},
    {"row", 0, "'KERNEL DIM=N,...'", OPT_TEXT, AT(row), 0, RUNS,
        "one kernel on one problem, as in 'attn/mma batch=64,ctx=128K'"},
    {"cache", 0, "cold|hot|both", OPT_CACHE, AT(cache), AT(cache_given), RUNS,
        "no input in cache (default), all of it, or a row of each"},
    {"seed", 0, "N", OPT_U64, AT(seed), AT(seed_given), RUNS | PRECISION | GATE, "seed of the data; default 1"},
    {"device", 0, "host|cuda[:N]|auto", OPT_DEVICE, AT(device), 0, RUNS | LIST | DOCTOR | GATE,
        "where to run; auto: a GPU where there is one; also by UUID, as in GPU-1b2c"},
    {"plugin", 0, "FILE.so", OPT_LIST, AT(plugins), 0, RUNS | LIST,
        "a kernel of your own, built as a shared object; repeatable"},
    {"wrap", 0, "'COMMAND ...'", OPT_TEXT, AT(wrap), 0, RUNS,
        "put a tool before the worker, as in 'ncu --set full'; nothing is timed, and profile refuses it"},
    {"floors", 0, NULL, OPT_FLAG, AT(floors), 0, DOCTOR,
        "noise floor of each row, by which gates widen its intervals: the same kernel against itself, and after a tracer; takes "
        "minutes"},
    {"no-lock", 0, NULL, OPT_FLAG, AT(no_lock), 0, RUNS | DOCTOR | GATE, "do not wait for other runs on the same device"},
    {"budget", 0, "TIME", OPT_SECONDS, AT(budget_s), 0, TIMED | GATE, "time for the whole sweep, shared over its rows: 30s, 2m"},
    {"max-time", 0, "TIME", OPT_SECONDS, AT(cap_s), 0, TIMED | GATE, "stop timing a row after this"},
    {"noise", 0, "PCT", OPT_PERCENT, AT(width_pct), 0, TIMED | GATE,
        "stop timing a row when its interval is this narrow, in % of the median"},
    {"rounds", 0, "N", OPT_COUNT, AT(rounds), 0, TIMED | GATE, "exactly so many rounds a row instead"},
    {"timeout", 0, "TIME", OPT_SECONDS, AT(timeout_s), 0, RUNS | GATE, "a check or sample that takes longer is a timeout"},
    {"reference-s", 0, "S", OPT_DURATION, AT(reference_s), 0, RUNS | GATE,
        "seconds of CPU reference a problem, default 0.12; 0: as little as the CPU must, the rest by the op's oracle on the "
        "device; without an oracle 'checked_pct' says how much was checked"},
    {"out", 0, "DIR", OPT_TEXT, AT(out), 0, TIMED | PLOT | PRECISION | GATE,
        "run folder; default: results/runs/<time>-<sweep>; of plots: their run's"},
    {"resume", 0, "DIR", OPT_TEXT, AT(resume), 0, TIMED, "finish the run in this folder"},
    {"force", 0, NULL, OPT_FLAG, AT(force), 0, TIMED | PRECISION | GATE, "overwrite what exists"},
    {"dry-run", 'n', NULL, OPT_FLAG, AT(dry_run), 0, RUNS,
        "print the plan with an estimate of time and memory, run nothing"},
    {"show-config", 0, NULL, OPT_FLAG, AT(show_config), 0, RUNS,
        "print the merged options and where each is from, run nothing"},
    {"no-plots", 0, NULL, OPT_FLAG, AT(no_plots), 0, TIMED, "rows only"},
    {"strict", 0, NULL, OPT_FLAG, AT(strict), 0, RUNS | REPORT | GATE,
        "exit 4 where a row carries a mark or noise hides a growth"},
    {"static", 0, NULL, OPT_FLAG, AT(static_facts), 0, LIST, "list kernels: registers, stack, shared memory, instructions"},
    {"json", 0, NULL, OPT_FLAG, AT(json), 0, LIST | DOCTOR, "machine-readable"},
    {"junit", 0, "FILE", OPT_TEXT, AT(junit), 0, GATE, "the verdicts as JUnit XML, too"},
    {"markdown", 0, NULL, OPT_FLAG, AT(markdown), 0, TIMED | REPORT, "the table as Markdown"},
    {"color", 0, "auto|always|never", OPT_COLOUR, AT(colour), 0, ALL, "default: auto"},
    {"verbose", 'v', NULL, OPT_MORE, AT(verbose), 0, ALL, "more talk on stderr; twice: yet more"},
    {"quiet", 'q', NULL, OPT_FLAG, AT(quiet), 0, ALL, "no progress, only results and errors"},
    {"help", 'h', NULL, OPT_FLAG, AT(help), 0, ALL, "this text"},
    {0},
};

_Static_assert(COUNT(cli_options) <= MAX_OPTIONS, "origin[] has room for every option");
