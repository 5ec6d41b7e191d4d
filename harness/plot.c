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
#include "plot_script.h"
#include "runfolder.h"

enum { MOST_PLOTS = 12 };

struct studio {
    const struct table *table;
    const char         *plots;   /* folder */
    const char         *look;    /* what plots/lines.gp holds */
    struct plot_result  result;
    int                 left_out;
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

static void draw(struct studio *s, const struct figure *figure)
{
    char name[160], script[170], svg[800], why[256];
    figure_name(s->table, figure, name, sizeof(name));
    char *data = figure_data(figure), *words = figure_script(figure, name, s->look);
    if (write_file(s, name, "dat", data) && write_file(s, name, "gp", words)) {
        int failed = gnuplot_run(s->plots, text(script, sizeof(script), "%s.gp", name), why, sizeof(why));
        text(svg, sizeof(svg), "%s/%s.svg", s->plots, name);
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
    free(data);
    free(words);
}

static void draw_all(struct studio *s)
{
    int n;
    struct slice *slices = slices_find(s->table, &n);
    if (!n) remark(s, "no plots: no dimension has two values with a measured kernel; sweep one with -a batch=1,16,64");
    int drawn = 0;
    for (int i = 0; i < n; i++) {
        struct figure *figures;
        int made = figures_make(s->table, &slices[i], &figures);
        for (int f = 0; f < made; f++) {
            if (drawn == MOST_PLOTS) s->left_out++;
            else if (figures[f].n) draw(s, &figures[f]), drawn++;
        }
        figures_free(figures, made);
    }
    free(slices);
}

struct plot_result plot_run(const char *folder, const struct table *table)
{
    char plots[600], look_path[600], why[256], *look = NULL;
    size_t bytes;
    struct studio s = {.table = table, .plots = text(plots, sizeof(plots), "%s/plots", folder)};
    text(look_path, sizeof(look_path), "%s/plots/lines.gp", source_root());
    int error = file_read(look_path, &look, &bytes);
    if (error) {
        complain(&s, text(why, sizeof(why), "no plots: %.180s: %s", look_path, strerror(error)));
    } else if (gnuplot_probe(why, sizeof(why))) {
        complain(&s, why);
    } else if (mkdir(plots, 0777) && errno != EEXIST) {
        complain(&s, text(why, sizeof(why), "no plots: %.180s: %s", plots, strerror(errno)));
    } else {
        s.look = look;
        draw_all(&s);
    }
    if (s.left_out)
        remark(&s, text(why, sizeof(why),
            "%d of %d plots drawn, those with most points first; a sweep of fewer values at once shows the others",
            s.result.written, s.result.written + s.left_out));
    free(look);
    return s.result;
}
