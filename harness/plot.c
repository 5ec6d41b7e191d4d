#include "plot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base.h"
#include "csv.h"
#include "figure.h"
#include "format.h"
#include "gnuplot.h"
#include "plot_map.h"
#include "plot_profile.h"
#include "plot_script.h"
#include "profile_read.h"
#include "runfolder.h"

enum { MOST_PLOTS = 12 };

struct studio {
    const struct table *table;
    const char         *plots;   /* folder */
    const char         *look, *map_look;   /* what plots/lines.gp and plots/map.gp hold */
    struct plot_result  result;
    int                 drawn, left_out;       /* figures; maps don't count */
};

static void remark(struct studio *s, const char *what)
{
    size_t n = strlen(s->result.note);
    text(s->result.note + n, sizeof(s->result.note) - n, "%s%s", n ? "; " : "", what);
}

/* The first is said; later ones are likely the same. */
static void complain(struct studio *s, const char *why)
{
    if (!s->result.unfit) remark(s, why);
    s->result.unfit = true;
}

static bool write_file(struct studio *s, const char *name, const char *ending, const char *content)
{
    char file[200], why[256];
    int error = runfolder_write(s->plots, text(file, sizeof(file), "%s.%s", name, ending), content);
    if (error) complain(s, text(why, sizeof(why), "%.150s/%.60s: can't be written: %s", s->plots, file, strerror(error)));
    if (!s->result.error) s->result.error = error;
    return !error;
}

/* gnuplot may end well and leave half a file on a full disk. */
static bool is_whole_svg(const char *path)
{
    char *bytes;
    size_t n;
    if (file_read(path, &bytes, &n)) return false;
    bool whole = n > 8 && strstr(bytes + (n > 64 ? n - 64 : 0), "</svg>");
    free(bytes);
    return whole;
}

/* Runs NAME.gp, which must leave a whole NAME.svg. */
static void run_script(struct studio *s, const char *name)
{
    char script[170], svg[800], why[256];
    unlink(text(svg, sizeof(svg), "%s/%s.svg", s->plots, name));   /* an older one, or a link to what is no plot */
    int failed = gnuplot_run(s->plots, text(script, sizeof(script), "%s.gp", name), why, sizeof(why));
    if (!failed && !is_whole_svg(svg)) {
        failed = 1;
        text(why, sizeof(why), "%s.svg came out torn: is the disk full?", name);
    }
    if (failed) {
        unlink(svg);
        complain(s, why);
    }
    s->result.written += !failed;
}

static void draw(struct studio *s, const struct figure *figure)
{
    char name[160];
    figure_name(s->table, figure, name, sizeof(name));
    char *data = figure_data(figure), *words = figure_script(figure, name, s->look);
    if (write_file(s, name, "dat", data) && write_file(s, name, "gp", words)) run_script(s, name);
    free(data);
    free(words);
}

/* Maps of winners come beside the figures, two an op at most. */
static void draw_maps(struct studio *s)
{
    int n;
    struct map *maps = maps_find(s->table, &n);
    for (int m = 0; m < n; m++) {
        if (maps[m].n_kernels < 2) continue;   /* nothing crosses */
        char name[160], *words = map_script(s->table, &maps[m], map_name(s->table, &maps[m], name, sizeof(name)), s->map_look);
        if (write_file(s, name, "gp", words)) run_script(s, name);
        free(words);
    }
    free(maps);
}

static void draw_all(struct studio *s)
{
    int n;
    struct slice *slices = slices_find(s->table, &n);
    if (!n && !s->result.written && !s->result.refused)
        remark(s, "no plots: no dimension has two values with a measured kernel; sweep one with -a batch=1,16,64");
    for (int i = 0; i < n; i++) {
        struct figure *figures;
        int made = figures_make(s->table, &slices[i], &figures);
        for (int f = 0; f < made; f++) {
            if (s->drawn == MOST_PLOTS) s->left_out++;
            else if (figures[f].n) draw(s, &figures[f]), s->drawn++;
        }
        figures_free(figures, made);
    }
    free(slices);
}

/* What a file below plots/ of the source tree holds, or NULL with the complaint made. */
static char *read_look(struct studio *s, const char *name)
{
    char path[600], why[256], *ret = NULL;
    size_t bytes;
    int error = file_read(text(path, sizeof(path), "%s/plots/%s", source_root(), name), &ret, &bytes);
    if (!error) return ret;
    complain(s, text(why, sizeof(why), "no plots: %.180s: %s", path, strerror(error)));
    return NULL;
}

/* What a script draws, where there is one. */
static void draw_script(struct studio *s, const char *name, char *words)
{
    if (words && write_file(s, name, "gp", words)) run_script(s, name);
    free(words);
}

/* Bars of an op, in pages. */
static void draw_bars(struct studio *s, const struct sheet *breakdown, const char *op, const char *look)
{
    char name[80], words[160], tame[40];
    int bars = bars_count(breakdown, op);
    for (int page = 0; page * PAGE_BARS < bars && page * PAGE_BARS < MOST_BARS; page++) {
        gnuplot_file_name(text(name, sizeof(name), page ? "%.32s-breakdown-%d" : "%.32s-breakdown", op, page + 1));
        draw_script(s, name, bars_script(breakdown, op, page, name, look));
    }
    if (bars > MOST_BARS)
        remark(s, text(words, sizeof(words), "breakdowns of %d of %d rows of %s drawn, the first ones; breakdown.csv has all",
            MOST_BARS, bars, tame_text(op, tame, sizeof(tame))));
}

static void draw_breakdown(struct studio *s, const struct sheet *breakdown)
{
    char *look = read_look(s, "bars.gp");
    for (int i = 0; look && i < breakdown->n; i++) {
        const char *op = sheet_text(breakdown, i, "op");
        bool first = true;
        for (int k = 0; k < i && first; k++) first = strcmp(sheet_text(breakdown, k, "op"), op) != 0;
        if (first) draw_bars(s, breakdown, op, look);
    }
    free(look);
}

static void draw_roofline(struct studio *s, const char *folder, const struct sheet *counters)
{
    char path[600], why[256], *look = NULL;
    struct machine machine;
    int left_out = 0;
    if (env_read(text(path, sizeof(path), "%s/env.json", folder), &machine, why, sizeof(why))) remark(s, why);
    else look = read_look(s, "roofline.gp");
    if (look) draw_script(s, "roofline", roofline_script(counters, &machine.ceilings, "roofline", look, &left_out));
    free(look);
    if (left_out)
        remark(s, text(why, sizeof(why), "%d more kernels than the roofline has marks for; counters.csv has all", left_out));
}

/* Whether a sheet was read; one that is not there says that the run was not profiled. */
static bool is_there(struct studio *s, int error, const char *why)
{
    if (error && error != ENOENT) remark(s, why), s->result.refused = true;
    return !error;
}

/* A run that was profiled left breakdown.csv and counters.csv. */
static void draw_profile(struct studio *s, const char *folder)
{
    char why[700];
    struct sheet sheet;
    if (is_there(s, profile_read_breakdown(folder, &sheet, why, sizeof(why)), why)) {
        draw_breakdown(s, &sheet);
        sheet_free(&sheet);
    }
    if (is_there(s, profile_read_counters(folder, &sheet, why, sizeof(why)), why)) {
        draw_roofline(s, folder, &sheet);
        sheet_free(&sheet);
    }
}

struct plot_result plot_run(const char *folder, const struct table *table)
{
    char plots[600], why[256], *look = NULL, *map_look = NULL;
    struct studio s = {.table = table, .plots = text(plots, sizeof(plots), "%s/plots", folder)};
    s.look = look = read_look(&s, "lines.gp");
    s.map_look = map_look = look ? read_look(&s, "map.gp") : NULL;
    if (!map_look) {
        free(look);
        return s.result;
    }
    if (gnuplot_probe(why, sizeof(why))) {
        complain(&s, why);
    } else if (mkdir(plots, 0777) && errno != EEXIST) {
        s.result.error = errno;
        complain(&s, text(why, sizeof(why), "no plots: %.180s: %s", plots, strerror(errno)));
    } else {
        draw_profile(&s, folder);
        draw_all(&s);
        draw_maps(&s);
    }
    if (s.left_out)
        remark(&s, text(why, sizeof(why),
            "%d of %d plots drawn, those with most points first; a sweep of fewer values at once shows the others",
            s.drawn, s.drawn + s.left_out));
    free(look), free(map_look);
    return s.result;
}
