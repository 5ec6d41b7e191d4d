/* Maps of winners for people: a letter a kernel, several letters where they tie. */
#include <stdlib.h>
#include <string.h>
#include "base.h"
#include "crossover.h"
#include "registry.h"
#include "report_parts.h"

static char *cell_text(const struct map_cell *cell, char *ret)
{
    int n = 0;
    for (int i = 0; i < cell->n; i++) ret[n++] = (char)('a' + cell->kernel[i]);
    if (!cell->there) ret[n++] = '.';
    ret[n] = '\0';
    return ret;
}

static bool any_tie(const struct map *map)
{
    for (int y = 0; y < map->n_down; y++)
        for (int x = 0; x < map->n_across; x++)
            if (map->cell[y][x].n > 1) return true;
    return false;
}

/* Of a map without a border. */
char *everywhere_text(const struct table *table, const struct map *map, char *ret, size_t size)
{
    char fixed[300];
    map_fixed_text(table, map, fixed, sizeof(fixed));
    return text(ret, size, "%s%s%s (%s, %s): %s at all %d of %s and %s", map->like->op, *fixed ? " at " : "", fixed,
        map->like->cache, map->like->engine, map->kernel[0], map->n_cells, map->down, map->across);
}

static void print_kernels(FILE *out, const struct map *map, const struct report_options *o)
{
    int column = 0;
    for (int k = 0; k < map->n_kernels; k++) {
        int wide = 4 + (int)strlen(map->kernel[k]);
        if (column && column + 2 + wide > o->width) fputc('\n', out), column = 0;
        fprintf(out, "%s%s%c%s %s", column ? "    " : "  ", o->colour ? "\033[1m" : "", 'a' + k, o->colour ? "\033[0m" : "",
            map->kernel[k]);
        column += wide + (column ? 2 : 0);
    }
    fputc('\n', out);
}

static void print_line(FILE *out, const struct map *map, int y, int from, int to)
{
    char word[32], letters[MOST_TIES + 2];
    fprintf(out, "  %8s", dim_text(map->down, map->down_value[y], word, sizeof(word)));
    for (int x = from; x < to; x++) fprintf(out, "%7s", cell_text(&map->cell[y][x], letters));
    fputc('\n', out);
}

static void print_map(FILE *out, const struct table *table, const struct map *map, const struct report_options *o)
{
    char words[700], fixed[500], word[32];
    int  fit = (o->width - 10) / 7;
    map_fixed_text(table, map, fixed, sizeof(fixed));
    text(words, sizeof(words), "%s%s%s (%s%s%s)%s", map->like->op, *fixed ? " at " : "", fixed, map->like->cache,
        *map->like->engine ? ", " : "", map->like->engine, any_tie(map) ? "; several letters: a tie" : "");
    fprintf(out, "\n%sfastest%s: ", o->colour ? "\033[1m" : "", o->colour ? "\033[0m" : "");
    if (map->n_kernels == 1) {
        wrap_words(out, o->width, 9, 2, everywhere_text(table, map, words, sizeof(words)));
        return;
    }
    wrap_words(out, o->width, 9, 2, words);
    print_kernels(out, map, o);
    for (int from = 0; from < map->n_across; from += fit) {
        int to = from + fit < map->n_across ? from + fit : map->n_across;
        fprintf(out, "  %8s  %s\n  %8s", map->down, map->across, "");
        for (int x = from; x < to; x++) fprintf(out, "%7s", dim_text(map->across, map->across_value[x], word, sizeof(word)));
        fputc('\n', out);
        for (int y = 0; y < map->n_down; y++) print_line(out, map, y, from, to);
    }
}

void report_crossover(FILE *out, const struct table *table, const struct report_options *o)
{
    int n;
    struct map *maps = maps_find(table, &n);
    for (int i = 0; i < n; i++) {
        if (o->markdown) markdown_map(out, table, &maps[i]);
        else print_map(out, table, &maps[i], o);
    }
    free(maps);
}
