#include "progress.h"

#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "base.h"
#include "format.h"
#include "scaling.h"
#include "registry.h"

char *clock_text(double seconds, char *ret, size_t size)
{
    if (!(seconds >= 0 && seconds < 1e8)) return text(ret, size, "-");
    long s = lround(seconds);
    if (s < 3600) return text(ret, size, "%ld:%02ld", s / 60, s % 60);
    return text(ret, size, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
}

double progress_left(int done, int total, double elapsed_s) {
    return done > 0 && total >= done ? elapsed_s / done * (total - done) : NAN;
}

struct progress progress_begin(int total, bool is_tty, bool quiet)
{
    struct progress p = {.to = stderr, .total = total, .width = 80, .began_s = now_s(), .bar = is_tty && !quiet, .quiet = quiet};
    struct winsize window;
    if (is_tty && !ioctl(STDERR_FILENO, TIOCGWINSZ, &window) && window.ws_col) p.width = window.ws_col;
    return p;
}

void progress_hide(struct progress *p)
{
    if (!p->drawn) return;
    fputs("\r\033[K", p->to);
    fflush(p->to);
    p->drawn = false;
}

/* [=====>    ] 12/40  1 failed  0:42 left  attn/mma batch=64. One column stays free: terminals wrap at the last. */
static void draw(struct progress *p, const char *what)
{
    enum { BAR = 20 };
    char line[400], left[32], tame[200], bar[BAR + 1];
    int full = p->total > 0 ? BAR * p->done / p->total : 0;
    for (int i = 0; i < BAR; i++) bar[i] = i < full ? '=' : i == full ? '>' : ' ';
    bar[BAR] = '\0';
    clock_text(progress_left(p->done, p->total, now_s() - p->began_s), left, sizeof(left));
    text(line, sizeof(line), "[%s] %d/%d", bar, p->done, p->total);
    if (p->failed) text(line + strlen(line), sizeof(line) - strlen(line), "  %d failed", p->failed);
    text(line + strlen(line), sizeof(line) - strlen(line), "  %s left  %s", left, tame_text(what, tame, sizeof(tame)));
    fprintf(p->to, "\r%.*s\033[K", p->width > 1 ? p->width - 1 : 0, line);
    fflush(p->to);
    p->drawn = true;
}

void progress_now(struct progress *p, const char *what)
{
    if (p->bar) draw(p, what);
}

/* One line a row, whole in itself: logs are read from anywhere. */
static void print_row(struct progress *p, const struct row *row)
{
    char time[32], what[700] = "", number[32], tame[400], growth[64];
    for (int d = 0; d < row->n_dims; d++) {
        size_t at = strlen(what);
        text(what + at, sizeof(what) - at, "%s%s=%s", d ? "," : "", row->dim[d].name,
            dim_text(row->dim[d].name, row->dim[d].value, number, sizeof(number)));
    }
    row_growth_text(row, growth, sizeof(growth));
    fprintf(p->to, "[%d/%d] %s%s%s%s%s %s%s%s: ", p->done, p->total, row->kernel, row->tune[0] ? " " : "", row->tune,
        growth[0] ? " " : "", growth, what, row->cache[0] ? " " : "", row->cache);
    if (row_status(row) == STATUS_OK) {
        fprintf(p->to, "%s%s%s\n", ns_text(row->t_med_ns, time, sizeof(time)), row->marks[0] ? "  " : "", row->marks);
    } else {
        fprintf(p->to, "%s%s%s\n", row->status, row->reason[0] ? ": " : "", tame_text(row->reason, tame, sizeof(tame)));
    }
    fflush(p->to);
}

void progress_row(struct progress *p, const struct row *row)
{
    p->done++;
    p->failed += row_failed(row);
    if (p->quiet) return;
    if (p->bar) draw(p, row->kernel);
    else print_row(p, row);
}

void progress_end(struct progress *p)
{
    progress_hide(p);
}
