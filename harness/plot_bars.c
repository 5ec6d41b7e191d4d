#include "plot_profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bar_parts.h"
#include "base.h"
#include "format.h"
#include "gnuplot.h"
#include "profile_read.h"
#include "registry.h"

enum { WIDTH = 640, LEFT = 16, RIGHT = 16, TITLE = 34, HEAD = 22, BAR = 26, LINE = 19, APART = 12, TIME = 90 };   /* pixels */
enum { LETTER = 8, LABEL_LETTER = 9 };
enum { FIRST_ROOM = (WIDTH - LEFT - RIGHT - TIME) / LABEL_LETTER, ROOM = (WIDTH - LEFT - RIGHT) / LABEL_LETTER };   /* letters */

static const char gap_colour[] = "#E4E4E4", ink[] = "#202020";   /* light grey: nothing ran */

static const char *cell(const struct sheet *s, int line, int column)
{
    return s->cell[(size_t)line * (size_t)s->columns + (size_t)column];
}

static bool same_cell(const struct sheet *s, int a, int b, const char *column)
{
    return !strcmp(sheet_text(s, a, column), sheet_text(s, b, column));
}

static bool varies(const struct sheet *s, int line, int column)
{
    for (int i = 0; i < s->n; i++)
        if (same_cell(s, i, line, "op") && strcmp(cell(s, i, column), cell(s, line, column))) return true;
    return false;
}

/* Whether `n` letters are an item of "splits=4;path=0". */
static bool has_item(const char *tune, const char *item, size_t n)
{
    for (; *tune; tune += strcspn(tune, ";"), tune += *tune == ';')
        if (strcspn(tune, ";") == n && !strncmp(tune, item, n)) return true;
    return false;
}

static void add(char *ret, size_t size, const char *format, int n, const char *word)
{
    size_t at = strlen(ret);
    text(ret + at, size - at, format, n, word);
}

/* Tunables: those at 0, their own choice, only where another row of the kernel has made one. */
static void add_tunables(const struct sheet *s, int line, char *ret, size_t size)
{
    const char *tune = sheet_text(s, line, "tune");
    for (size_t n; *tune; tune += n, tune += *tune == ';') {
        bool told;
        n = strcspn(tune, ";");
        told = n < 2 || strncmp(tune + n - 2, "=0", 2) != 0;
        for (int i = 0; i < s->n && !told; i++)
            told = same_cell(s, i, line, "op") && same_cell(s, i, line, "kernel") && !has_item(sheet_text(s, i, "tune"), tune, n);
        if (told) add(ret, size, " %.*s", (int)n, tune);
    }
}

/* "attn/splitk splits=4 batch=64 hot": with what differs between the rows of the op. */
static void make_label(const struct sheet *s, int line, char *ret, size_t size)
{
    text(ret, size, "%s", sheet_text(s, line, "kernel"));
    add_tunables(s, line, ret, size);
    for (int c = 0; c < s->columns && strcmp(s->name[c], "pass"); c++) {
        const char *name = s->name[c], *value = cell(s, line, c);
        bool plain = !strcmp(name, "cache") || !strcmp(name, "engine");
        int64_t number;
        char word[32];
        if (!strcmp(name, "op") || !strcmp(name, "kernel") || !strcmp(name, "tune") || !*value || !varies(s, line, c)) continue;
        if (!plain && !cell_whole(value, &number)) value = dim_text(name, number, word, sizeof word);
        if (!plain) add(ret, size, " %.*s=", 40, name);
        add(ret, size, plain ? " %.*s" : "%.*s", 60, value);
    }
}

/* Letters of the first line of words that has this room: up to a blank, where there is one. */
static int line_of(const char *words, int room)
{
    int n = (int)strlen(words), blank = room;
    if (n <= room) return n;
    while (blank > 0 && words[blank] != ' ') blank--;
    return blank ? blank : room;
}

static int rows_of(const char *words)
{
    int n = 0;
    for (; *words || !n; n++) words += line_of(words, n ? ROOM : FIRST_ROOM), words += *words == ' ';
    return n;
}

static bool is_replay(const struct sheet *s, int line, const char *op)
{
    return !strcmp(sheet_text(s, line, "op"), op) && !strcmp(sheet_text(s, line, "pass"), "replay");
}

/* Where the words of each part stand, below the bar. */
static void lay_key(struct bar *b)
{
    int x = LEFT, row = 0;
    for (int i = 0; i < b->n; i++) {
        int wide = LETTER * ((int)strlen(b->segment[i].words) + 2);
        if (x + wide > WIDTH - RIGHT && x > LEFT) row++, x = LEFT;
        b->segment[i].x = x, b->segment[i].row = row;
        x += wide;
    }
    b->key_rows = row + 1;
}

/* The first bar at or behind a line; false: none. */
static bool find_bar(const struct sheet *s, const char *op, int line, struct bar *ret)
{
    while (line < s->n && !is_replay(s, line, op)) line++;
    if (line == s->n) return false;
    *ret = (struct bar){.first = line, .end = line + 1, .span_ns = NAN};
    while (ret->end < s->n && is_replay(s, ret->end, op) && profile_same_row(s, line, ret->end)) ret->end++;
    for (int i = ret->first; i < ret->end; i++)
        if (!strcmp(sheet_text(s, i, "part"), "span")) ret->span_ns = sheet_real(s, i, "t_ns");
    return true;
}

static int bar_height(const struct bar *b)
{
    return HEAD + LINE * (b->label_rows - 1) + BAR + LINE * b->key_rows + APART;
}

int bars_count(const struct sheet *s, const char *op)
{
    struct bar bar = {.end = 0};
    int n = 0;
    while (find_bar(s, op, bar.end, &bar)) n++;
    return n;
}

/* All that are drawn, of every page, since colours go on from page to page. */
static int find_bars(const struct sheet *s, const char *op, struct bar *ret)
{
    struct bar bar = {.end = 0};
    int n = 0;
    while (n < MOST_BARS && find_bar(s, op, bar.end, &bar)) {
        bar_parts(s, ret, n, &bar);
        lay_key(&bar);
        make_label(s, bar.first, bar.label, sizeof bar.label);
        bar.label_rows = rows_of(bar.label);
        ret[n++] = bar;
    }
    return n;
}

struct canvas {
    FILE *out;
    int   height, objects, labels;
};

static void put_box(struct canvas *c, double x, int y, double wide, const char *colour)
{
    fprintf(c->out, "set object %d rect from screen %.5f, screen %.5f to screen %.5f, screen %.5f fc rgb '%s' fs solid noborder\n",
        ++c->objects, x / WIDTH, 1 - (double)y / c->height, (x + wide) / WIDTH, 1 - (double)(y + BAR) / c->height, colour);
}

/* place: "left" or "right" of x, and a font where it is another. */
static void put_words(struct canvas *c, int x, int y, const char *words, const char *place, const char *colour)
{
    fprintf(c->out, "set label %d ", ++c->labels);
    gnuplot_quoted(c->out, words);
    fprintf(c->out, " at screen %.5f, screen %.5f %s textcolor rgb '%s'\n", (double)x / WIDTH, 1 - (double)y / c->height, place,
        colour);
}

/* What is left of the span are gaps. Parts that overlap have no more than the bar. */
static void put_bar(struct canvas *c, const struct bar *b, int y)
{
    double x = LEFT, wide = WIDTH - LEFT - RIGHT;
    char words[100];
    const char *label = b->label;
    put_words(c, WIDTH - RIGHT, y + HEAD / 2 - 1, ns_text(b->span_ns, words, sizeof words), "right", ink);
    for (int i = 0; i < b->label_rows; i++, y += LINE) {
        int n = line_of(label, i ? ROOM : FIRST_ROOM);
        put_words(c, LEFT, y + HEAD / 2 - 1, text(words, sizeof words, "%.*s", n, label), "left", ink);
        label += n, label += *label == ' ';
    }
    y += HEAD - LINE;
    put_box(c, LEFT, y, wide, gap_colour);
    for (int i = 0; i < b->n; i++) {
        const struct segment *part = &b->segment[i];
        double room = fmax(0, fmin(wide * part->pct / 100, LEFT + wide - x));
        put_box(c, x, y, room, bar_colours[part->colour]);
        put_words(c, part->x, y + BAR + LINE / 2 + 3 + LINE * part->row, part->words, "left font ',14'",
            bar_colours[part->colour]);
        x += room;
    }
}

char *bars_script(const struct sheet *s, const char *op, int page, const char *name, const char *look)
{
    struct bar every[MOST_BARS];
    int all = bars_count(s, op), drawn = find_bars(s, op, every), left = drawn - page * PAGE_BARS;
    int n = left < PAGE_BARS ? left : PAGE_BARS;
    bool last = left <= PAGE_BARS;
    if (n <= 0) return NULL;
    const struct bar *bar = every + page * PAGE_BARS;
    char *bytes, words[160], pages[40] = "";
    size_t size;
    locale_t before = c_numbers();
    struct canvas c = {.out = open_memstream(&bytes, &size), .height = TITLE + 12 + (last && all > drawn ? LINE : 0)};
    for (int b = 0; b < n; b++) c.height += bar_height(&bar[b]);
    gnuplot_file(c.out, "figure", name, "svg");
    fprintf(c.out, "width = %d\nheight = %d\n", WIDTH, c.height);
    if (drawn > PAGE_BARS) text(pages, sizeof pages, ", %d of %d", page + 1, (drawn + PAGE_BARS - 1) / PAGE_BARS);
    text(words, sizeof words, "%.32s: where a call's time goes (grey: nothing runs)%s", op, pages);
    put_words(&c, LEFT, TITLE / 2, words, "left font ',17'", ink);
    int y = TITLE;
    for (int b = 0; b < n; y += bar_height(&bar[b]), b++) put_bar(&c, &bar[b], y);
    if (last && all > drawn)
        put_words(&c, LEFT, y + LINE / 2, text(words, sizeof words, "%d more rows: breakdown.csv", all - drawn), "left", ink);
    fprintf(c.out, "\n%s", look);
    uselocale(before);
    if (fclose(c.out)) die(EXIT_ENVIRONMENT, "out of host memory for a plot");
    return bytes;
}
