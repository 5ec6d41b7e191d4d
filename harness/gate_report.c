/* Findings of a gate for people, and for programs as JUnit XML. */
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base.h"
#include "format.h"
#include "gate.h"

enum { WIDTH = 80, MARGIN = 16 };

/* What the section asks for, in its own words. */
static char *wanted(const struct gate *gate, char *ret, size_t size)
{
    size_t n = 0;
    if (gate == &gate_whole_run) return text(ret, size, "every row of its plan.ini, each on a whole line");
    if (!gate->is_static)
        return text(ret, size, "%s at least %g times as fast as %s", gate->kernel, gate->at_least, gate->over);
    for (int i = 0; i < gate->n_globs; i++) n += strlen(text(ret + n, size - n, "%s%s", i ? ", " : "", gate->glob[i].word));
    for (int i = 0; i < STATIC_NUMBERS; i++)
        if (gate->most[i] >= 0)
            n += strlen(text(ret + n, size - n, ", %s at most %d", static_columns[i].name, (int)gate->most[i]));
    if (*gate->sm) text(ret + n, size - n, ", sm %s", gate->sm);
    return ret;
}

static char *measured(const struct finding *f, char *ret, size_t size)
{
    char ratio[32], lo[32], hi[32], floor[32];
    if (!isfinite(f->ratio)) return text(ret, size, "%s", "");
    if (!isfinite(f->lo) || !isfinite(f->hi)) return text(ret, size, "%s, ", ratio_text(f->ratio, ratio, sizeof ratio));
    return text(ret, size, "%s (%s..%s%s%s), ", ratio_text(f->ratio, ratio, sizeof ratio), ratio_text(f->lo, lo, sizeof lo),
        ratio_text(f->hi, hi, sizeof hi), f->floor_pct > 0 ? ", noise floor " : "",
        f->floor_pct > 0 ? percent_text(f->floor_pct, floor, sizeof floor) : "");
}

static char *told(const struct finding *f, char *ret, size_t size)
{
    char ratio[128];
    return text(ret, size, "%s%s%s%s", measured(f, ratio, sizeof ratio), f->what, *f->what && *f->why ? ": " : "", f->why);
}

void gate_print(FILE *f, const struct findings *all, const char *title, const char *folder)
{
    char words[1200], tame[1200];
    text(words, sizeof words, "%s%s%s", title, folder ? " on " : "", folder ? folder : "");
    wrap_words(f, WIDTH, 0, 4, tame_text(words, tame, sizeof tame));
    for (int i = 0; i < all->n; i++) {
        const struct finding *one = &all->finding[i];
        if (!i || one[-1].gate != one->gate) {
            char asked[1000];
            text(words, sizeof words, "[%s] %s", one->gate->name, wanted(one->gate, asked, sizeof asked));
            fputc('\n', f);
            wrap_words(f, WIDTH, 0, 2, tame_text(words, tame, sizeof tame));
        }
        int column = fprintf(f, "  %-*s", MARGIN - 2, verdict_name[one->verdict]);
        wrap_words(f, WIDTH, column, MARGIN, tame_text(told(one, words, sizeof words), tame, sizeof tame));
        if (!one->repeat) continue;
        column = fprintf(f, "%*s", MARGIN, "");
        wrap_command(f, WIDTH, column, MARGIN + 2, tame_text(one->repeat, tame, sizeof tame));
    }
    fprintf(f, "\n%d hold%s, %d broken, %d inconclusive, %d left out\n", all->count[GATE_HOLDS],
        all->count[GATE_HOLDS] == 1 ? "s" : "", all->count[GATE_BROKEN], all->count[GATE_OPEN], all->count[GATE_LEFT_OUT]);
}

/* Bytes of the UTF-8 character at p that XML may hold, or 0. */
static int xml_character(const unsigned char *p)
{
    int      n = *p < 0x80 ? 1 : (*p & 0xe0) == 0xc0 ? 2 : (*p & 0xf0) == 0xe0 ? 3 : (*p & 0xf8) == 0xf0 ? 4 : 0;
    uint32_t least[] = {0, 0x20, 0x80, 0x800, 0x10000}, code = n == 1 ? *p : *p & (0x7f >> n);
    for (int i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (p[i] & 0x3f);
    }
    bool surrogate = code >= 0xd800 && code < 0xe000, none = code >= 0x110000 || (code & 0xfffe) == 0xfffe;
    return n && code >= least[n] && !surrogate && !none ? n : 0;
}

static void xml_text(FILE *f, const char *words)
{
    static const char *const escapes[] = {['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;"};
    for (const unsigned char *p = (const unsigned char *)words; *p;) {
        int n = xml_character(p);
        if (*p < COUNT(escapes) && escapes[*p]) fputs(escapes[*p], f);
        else if (n) fwrite(p, 1, (size_t)n, f);
        else fputc('?', f);
        p += n ? n : 1;
    }
}

static void xml_attribute(FILE *f, const char *name, const char *value)
{
    fprintf(f, " %s=\"", name);
    xml_text(f, value);
    fputc('"', f);
}

static void junit_case(FILE *f, const struct finding *one)
{
    static const char *const element[GATE_VERDICTS] = {NULL, "failure", "error", "skipped"};
    char words[1200], asked[1000];
    text(words, sizeof words, "%s%s%s", wanted(one->gate, asked, sizeof asked), *one->what ? ": " : "", one->what);
    fputs("  <testcase", f);
    xml_attribute(f, "name", words);
    xml_attribute(f, "classname", one->gate->name);
    fputs(" time=\"0\"", f);
    if (one->verdict == GATE_HOLDS) {
        fputs("/>\n", f);
        return;
    }
    fprintf(f, ">\n    <%s", element[one->verdict]);
    xml_attribute(f, "message", told(one, words, sizeof words));
    if (one->verdict != GATE_LEFT_OUT) xml_attribute(f, "type", verdict_name[one->verdict]);
    fputc('>', f);
    if (one->repeat) xml_text(f, one->repeat);
    fprintf(f, "</%s>\n  </testcase>\n", element[one->verdict]);
}

/* As the strictest of the schemas in use has it: one suite, with host, time and empty streams. */
void gate_junit(FILE *f, const struct findings *all, const char *title)
{
    char      stamp[32], host[256] = "localhost";
    time_t    now = time(NULL);
    struct tm utc;
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", gmtime_r(&now, &utc));
    if (gethostname(host, sizeof host - 1)) strcpy(host, "localhost");
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite", f);
    xml_attribute(f, "name", title);
    xml_attribute(f, "hostname", host);
    fprintf(f, " timestamp=\"%s\" tests=\"%d\" failures=\"%d\" errors=\"%d\" skipped=\"%d\" time=\"0\">\n  <properties/>\n", stamp,
        all->n, all->count[GATE_BROKEN], all->count[GATE_OPEN], all->count[GATE_LEFT_OUT]);
    for (int i = 0; i < all->n; i++) junit_case(f, &all->finding[i]);
    fputs("  <system-out/>\n  <system-err/>\n</testsuite>\n", f);
}
