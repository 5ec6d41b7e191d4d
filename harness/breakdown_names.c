/* What a reader calls kernels and parts: see breakdown.h. */
#include "breakdown.h"

#include <ctype.h>
#include <string.h>

#include "base.h"

/* Where the name proper begins: behind the last blank or :: that stands outside of < > and ( ). */
static const char *name_begin(const char *name, const char *end)
{
    const char *begin = name;
    int depth = 0;
    for (const char *c = name; c < end; c++) {
        depth += *c == '<' || *c == '(';
        depth -= *c == '>' || *c == ')';
        if (!depth && (*c == ' ' || (*c == ':' && c[1] == ':'))) begin = c + (*c == ' ' ? 1 : 2);
    }
    return begin;
}

char *kernel_short_name(const char *name, char *ret, size_t size)
{
    /* The parameters: the first ( outside of < > that does not open "(anonymous namespace)". */
    const char *end = name;
    for (int depth = 0; *end; end++) {
        if (!strncmp(end, "(anonymous namespace)", 21)) {
            end += 20;
            continue;
        }
        depth += *end == '<';
        depth -= *end == '>';
        if (!depth && *end == '(') break;
    }
    const char *begin = name_begin(name, end);
    if (begin == end) begin = name;
    return text(ret, size, "%.*s", (int)(end - begin), begin);
}

static bool is_letter(char c)
{
    return isalnum((unsigned char)c);
}

/* Does a word, or several in a row, of the name say the range? */
static bool says(const char *name, const char *range)
{
    size_t n = strlen(range);
    for (const char *at = name; (at = strcasestr(at, range)); at++)
        if ((at == name || !is_letter(at[-1]) || !is_letter(*at)) && (!is_letter(at[n]) || !is_letter(at[n - 1]))) return true;
    return false;
}

/* Cuts words that are longer, between two characters of UTF-8. */
static void cut(char *words, int most)
{
    if ((int)strlen(words) <= most) return;
    int n = most - 2;
    while (n > 0 && (words[n] & 0xC0) == 0x80) n--;
    strcpy(words + n, "..");
}

char *part_text(const char *range, const char *name, int most, char *ret, size_t size)
{
    char phase[64] = "";
    if (*range && !says(name, range)) cut(text(phase, sizeof phase, "%s", range), most / 2);
    text(ret, size, "%s%s%s", phase, *phase ? ": " : "", name);
    cut(ret, most);
    return ret;
}
