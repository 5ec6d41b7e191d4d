#include "bar_parts.h"

#include <string.h>

#include "base.h"
#include "breakdown.h"
#include "format.h"

enum { PART = 32 };   /* letters of a part's name */

/* Okabe and Ito's palette without its yellow, and the rest of the parts. */
const char *const bar_colours[SEGMENTS + 1] =
    {"#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#303030", "#8F8F8F"};

static bool is_part(const struct sheet *s, int line)
{
    const char *part = sheet_text(s, line, "part");
    return strcmp(part, "gaps") && strcmp(part, "overlap") && strcmp(part, "span") && sheet_real(s, line, "share_pct") > 0;
}

/* Whether lines of two bars are the same part. */
static bool same_part(const struct sheet *s, int a, int b)
{
    static const char *const names[] = {"range", "name", "part"};
    for (int i = 0; i < COUNT(names); i++)
        if (strcmp(sheet_text(s, a, names[i]), sheet_text(s, b, names[i]))) return false;
    return true;
}

/* "product: nvjet_64x384.. 25 %" */
static struct segment segment_of(const struct sheet *s, int line)
{
    struct segment ret = {.pct = sheet_real(s, line, "share_pct"), .line = line};
    char share[32], name[300];
    const char *whole = sheet_text(s, line, "name");
    part_text(sheet_text(s, line, "range"), *whole ? whole : sheet_text(s, line, "part"), PART, name, sizeof name);
    text(ret.words, sizeof ret.words, "%s %s", name, percent_text(ret.pct, share, sizeof share));
    return ret;
}

/* By time, as the lines stand; the smallest are one where there is no colour for each. */
static void find_segments(const struct sheet *s, struct bar *b)
{
    int parts = 0;
    for (int i = b->first; i < b->end; i++) {
        char share[32];
        if (!is_part(s, i)) continue;
        struct segment next = segment_of(s, i), *last = &b->segment[SEGMENTS];
        if (++parts <= SEGMENTS + 1) b->segment[b->n++] = next;
        else last->pct += next.pct, text(last->words, sizeof last->words, "%d others %s", parts - SEGMENTS,
            percent_text(last->pct, share, sizeof share));
    }
}

/* Of the part with these names in an earlier bar; -1: none has it. */
static int known_colour(const struct sheet *s, const struct bar *before, int n, int line)
{
    for (int b = 0; b < n; b++)
        for (int i = 0; i < before[b].n && i < SEGMENTS; i++)
            if (same_part(s, before[b].segment[i].line, line)) return before[b].segment[i].colour;
    return -1;
}

/* A part keeps its colour from bar to bar, so that bars compare; new ones take, from the largest on, what is left. */
static void pick_colours(const struct sheet *s, const struct bar *before, int n, struct bar *b)
{
    bool taken[SEGMENTS + 1] = {false};
    int parts = b->n < SEGMENTS ? b->n : SEGMENTS;
    for (int i = 0; i < parts; i++) {
        int colour = known_colour(s, before, n, b->segment[i].line);
        b->segment[i].colour = colour >= 0 && taken[colour] ? -1 : colour;
        if (colour >= 0) taken[colour] = true;
    }
    for (int i = 0, next = 0; i < parts; i++) {
        while (taken[next]) next++;
        if (b->segment[i].colour < 0) b->segment[i].colour = next++;
    }
    if (b->n > SEGMENTS) b->segment[SEGMENTS].colour = SEGMENTS;
}

void bar_parts(const struct sheet *s, const struct bar *before, int n, struct bar *b)
{
    find_segments(s, b);
    pick_colours(s, before, n, b);
}
