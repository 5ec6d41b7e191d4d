#include <ctype.h>
#include <string.h>
#include "base.h"
#include "nearest.h"

enum { LONGEST = 64 };

/* Edits that turn a into b: insert, delete, replace, swap of neighbours; case does not count. */
static int distance(const char *a, const char *b)
{
    int row[3][LONGEST + 1];
    int n = (int)strlen(b);
    for (int j = 0; j <= n; j++) row[0][j] = j;
    int *before = row[2], *last = row[0], *now = row[1];
    for (int i = 1; a[i - 1]; i++) {
        now[0] = i;
        for (int j = 1; j <= n; j++) {
            int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
            int d = last[j - 1] + (x != y);
            if (last[j] + 1 < d) d = last[j] + 1;
            if (now[j - 1] + 1 < d) d = now[j - 1] + 1;
            if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) && y == tolower((unsigned char)a[i - 2]) &&
                before[j - 2] + 1 < d)
                d = before[j - 2] + 1;
            now[j] = d;
        }
        int *spare = before;
        before = last, last = now, now = spare;
    }
    return last[n];
}

const char *nearest(const char *word, const char *const *names, int n)
{
    const char *best = NULL;
    size_t      length = strlen(word);
    int         least = 0;
    if (!length || length > LONGEST) return NULL;
    for (int i = 0; i < n; i++) {
        size_t other = strlen(names[i]);
        if (!other || other > LONGEST) continue;
        int d = distance(word, names[i]);
        /* What was begun and cut short ("batc", "--budg") is near however much is missing. */
        if (length >= 3 && length < other && !strncmp(word, names[i], length) && d > 1) d = 1;
        int far = 1 + (int)(length < other ? length : other) / 3;
        if (d <= far && (!best || d < least)) best = names[i], least = d;
    }
    return best;
}

char *did_you_mean(const char *word, const char *const *names, int n, char *ret, size_t size)
{
    const char *name = nearest(word, names, n);
    return name ? text(ret, size, "; did you mean '%s'?", name) : text(ret, size, "%s", "");
}
