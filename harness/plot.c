#include "plot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base.h"
#include "csv.h"
#include "figure.h"
#include "gnuplot.h"
#include "plot_map.h"
#include "plot_profile.h"
#include "plot_script.h"
#include "runfolder.h"

enum { MOST_PLOTS = 12 };

struct studio {
    const struct table *table;
    const char         *plots;   /* folder */
    const char         *look, *map_look;   /* what plots/lines.gp and plots/map.gp hold */
    struct plot_result  result;
    int                 drawn, left_out;       /* figures; maps don't count */
};

/* The first thing to say is said; later ones are likely the same. */
static void remark(struct studio *s, const char *what)
{
    if (!s->result.note[0]) text(s->result.note, sizeof(s->result.note), "%s", what);
}

static void complain(struct studio *s, const char *why)
{
    remark(s, why);
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
    if (!n && !s->result.written)
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

/* Bars of every op, in pages. */
static void draw_bars(struct studio *s, const struct sheet *breakdown, const char *look)
{
    enum { MOST_PAGES = 3 };
    for (int i = 0; i < breakdown->n; i++) {
        const char *op = sheet_text(breakdown, i, "op");
        bool first = true;
        for (int k = 0; k < i && first; k++) first = strcmp(sheet_text(breakdown, k, "op"), op) != 0;
        for (int page = 0; first && page < MOST_PAGES; page++) {
            char name[80];
            gnuplot_file_name(text(name, sizeof(name), page ? "%.32s-breakdown-%d" : "%.32s-breakdown", op, page + 1));
            draw_script(s, name, bars_script(breakdown, op, page, name, look));
        }
    }
}

/* A run that was profiled left breakdown.csv and counters.csv. */
static void draw_profile(struct studio *s, const char *folder)
{
    char path[600], why[256];
    struct sheet sheet;
    struct machine machine;
    if (!sheet_read(text(path, sizeof(path), "%s/breakdown.csv", folder), &sheet)) {
        char *look = read_look(s, "bars.gp");
        if (look) draw_bars(s, &sheet, look);
        free(look), sheet_free(&sheet);
    }
    if (sheet_read(text(path, sizeof(path), "%s/counters.csv", folder), &sheet)) return;
    text(path, sizeof(path), "%s/env.json", folder);
    char *look = env_read(path, &machine, why, sizeof(why)) ? NULL : read_look(s, "roofline.gp");
    if (look) draw_script(s, "roofline", roofline_script(&sheet, &machine.ceilings, "roofline", look));
    free(look), sheet_free(&sheet);
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
