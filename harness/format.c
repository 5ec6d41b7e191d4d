#include "format.h"

#include <math.h>
#include <string.h>
#include "base.h"
#include "scaling.h"

/* Digits behind the point that leave three significant ones. */
static int decimals(double value)
{
    value = fabs(value);
    return value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
}

static const struct {
    const char *name;
    double      ns;
} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

/* The largest unit in which the value is at least 1 after rounding to three digits. */
static int unit_of(double ns)
{
    int unit = 0;
    while (unit + 1 < COUNT(units) && fabs(ns) >= 0.9995 * units[unit + 1].ns) unit++;
    return unit;
}

char *ns_text(double ns, char *ret, size_t size)
{
    if (isnan(ns)) return text(ret, size, "-");
    int unit = unit_of(ns);
    double value = ns / units[unit].ns;
    if (!(fabs(value) < 1e5)) return text(ret, size, "%.1g %s", value, units[unit].name);
    return text(ret, size, "%.*f %s", decimals(value), value, units[unit].name);
}

char *ns_range_text(double lo, double hi, char *ret, size_t size)
{
    if (isnan(lo) || isnan(hi)) return text(ret, size, "-");
    int unit = unit_of(hi);
    lo /= units[unit].ns;
    hi /= units[unit].ns;
    if (!(fabs(hi) < 1e5)) return text(ret, size, "%.1g..%.1g %s", lo, hi, units[unit].name);
    return text(ret, size, "%.*f..%.*f %s", decimals(hi), lo, decimals(hi), hi, units[unit].name);
}

char *ratio_text(double ratio, char *ret, size_t size)
{
    if (isnan(ratio)) return text(ret, size, "-");
    if (fabs(ratio) < 0.0995 || !(fabs(ratio) < 1e5)) return text(ret, size, "%.1gx", ratio);
    return text(ret, size, "%.*fx", decimals(ratio), ratio);
}

char *error_text(double error, char *ret, size_t size)
{
    if (isnan(error)) return text(ret, size, "-");
    if (error == 0) return text(ret, size, "0");
    text(ret, size, "%.1e", error);
    char *e = strchr(ret, 'e');   /* 1.1e-03 -> 1.1e-3 */
    if (e && e[2] == '0' && e[3]) memmove(e + 2, e + 3, strlen(e + 3) + 1);
    return ret;
}

char *percent_text(double percent, char *ret, size_t size)
{
    if (isnan(percent)) return text(ret, size, "-");
    if (!(fabs(percent) < 1e5)) return text(ret, size, "%.1g %%", percent);
    return text(ret, size, "%.*f %%", percent >= 9.995 && percent < 999.5 ? 1 : decimals(percent), percent);
}

char *amount_text(double value, char *ret, size_t size)
{
    char digits[32];
    if (isnan(value)) return text(ret, size, "-");
    if (!(fabs(value) < 1e15)) return text(ret, size, "%.3g", value);
    text(digits, sizeof(digits), "%.*f", decimals(value), value);
    int n = (int)strcspn(digits, ".");
    size_t to = 0;
    for (int i = 0; digits[i] && to + 2 < size; i++) {
        if (i && i < n && (n - i) % 3 == 0 && digits[i - 1] != '-') ret[to++] = ',';
        ret[to++] = digits[i];
    }
    ret[to] = '\0';
    return ret;
}

char *label_text(const struct row *row, const struct row *rows, int n, char *ret, size_t size)
{
    bool twins = false;
    for (int i = 0; i < n; i++) twins = twins || (!strcmp(rows[i].kernel, row->kernel) && strcmp(rows[i].tune, row->tune));
    char raw[sizeof(row->kernel) + sizeof(row->tune) + 66], growth[64];
    row_growth_text(row, growth, sizeof(growth));
    text(raw, sizeof(raw), "%s%s%s%s%s", row->kernel, twins && row->tune[0] ? " " : "", twins ? row->tune : "",
        growth[0] ? " " : "", growth);
    return tame_text(raw, ret, size);
}

char *tame_text(const char *from, char *ret, size_t size)
{
    size_t to = 0;
    for (; *from && to + 1 < size; from++) {
        unsigned char c = (unsigned char)*from;
        bool blank = c == '\n' || c == '\r' || c == '\t';
        if (!(blank && to && ret[to - 1] == ' ')) ret[to++] = blank ? ' ' : c < 32 || c == 127 ? '?' : *from;
    }
    ret[to] = '\0';
    return ret;
}

/* Bytes that continue a UTF-8 character take no column. */
static int columns_of(const char *s, size_t bytes)
{
    int n = 0;
    for (size_t i = 0; i < bytes && s[i]; i++) n += (s[i] & 0xC0) != 0x80;
    return n;
}

/* Length in bytes of the first `columns` characters. */
static size_t bytes_of(const char *s, int columns)
{
    size_t i = 0;
    while (s[i] && (columns > 0 || (s[i] & 0xC0) == 0x80)) columns -= (s[i++ + 1] & 0xC0) != 0x80;
    return i;
}

/* Length in bytes of the first word; a number and its unit are one. */
static size_t words_of(const char *words)
{
    static const char *const units[] = {"%", "ns", "us", "ms", "s", "B", "KB", "MB", "GB", "GB/s"};
    size_t bytes = strcspn(words, " "), unit = bytes && words[bytes] ? strcspn(words + bytes + 1, " ,;.:)") : 0;
    bool number = bytes && strchr("0123456789", words[bytes - 1]);
    for (int i = 0; i < COUNT(units) && number && unit; i++)
        if (strlen(units[i]) == unit && !strncmp(words + bytes + 1, units[i], unit))
            return bytes + 1 + strcspn(words + bytes + 1, " ");
    return bytes;
}

void wrap_words(FILE *out, int width, int column, int indent, const char *words)
{
    bool first = true;   /* on its line */
    while (*words == ' ') words++;
    while (*words) {
        size_t bytes = words_of(words);
        int    wide = columns_of(words, bytes);
        if (!first && column + 1 + wide > width) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
            first = true;
        }
        if (!first) fputc(' ', out), column++;
        if (column + wide > width && width > column) {   /* longer than a line can be */
            wide = width - column;
            bytes = bytes_of(words, wide);
        }
        fprintf(out, "%.*s", (int)bytes, words);
        column += wide;
        words += bytes;
        first = false;
        if (*words && *words != ' ') {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
            first = true;
        }
        while (*words == ' ') words++;
    }
    fputc('\n', out);
}

/* Outside of quotes a backslash and the next character are one: a quote within a quoted word is '\''. */
static bool is_escape(const char *s, bool quoted)
{
    return !quoted && s[0] == '\\' && s[1];
}

/* Bytes of the first shell word: up to a blank outside single quotes. */
static size_t word_bytes(const char *command)
{
    size_t n = 0;
    for (bool quoted = false; command[n] && (quoted || command[n] != ' '); n++) {
        if (is_escape(command + n, quoted)) n++;
        else quoted ^= command[n] == '\'';
    }
    return n;
}

/* Columns up to and with the next place where a quoted text may well be cut. */
static int piece_columns(const char *s)
{
    size_t bytes = strcspn(s, ", '");
    return columns_of(s, bytes + (s[bytes] && s[bytes] != '\''));
}

/* A quoted word wider than a line: 'abc def' becomes 'abc '\ and, at the start of the next line, 'def'. Returns the new column. */
static int cut_word(FILE *out, int width, int column, const char *word, size_t bytes)
{
    bool quoted = false, seam = false;
    for (size_t i = 0; i < bytes;) {
        bool   escape = is_escape(word + i, quoted), inner = !strncmp(word + i, "'\\''", 4);
        size_t one = bytes_of(word + i, 1 + escape);
        int    needed = inner ? 4 : seam && piece_columns(word + i) < width - 4 ? piece_columns(word + i) : 1;
        if (quoted && (inner || word[i] != '\'') && column + needed + 2 > width) {   /* and a quote, a backslash */
            fputs("'\\\n'", out);
            column = 1;
        }
        quoted ^= !escape && word[i] == '\'';
        seam = word[i] == ',' || word[i] == ' ';
        fprintf(out, "%.*s", (int)one, word + i);
        column += 1 + escape;
        i += one;
    }
    return column;
}

void wrap_command(FILE *out, int width, int column, int indent, const char *command)
{
    for (bool first = true; *command; first = false) {
        size_t bytes = word_bytes(command);
        int    wide = columns_of(command, bytes), ending = command[bytes] ? 2 : 0;   /* " \" where more follows */
        if (!first && column + 1 + wide + ending > width) {
            fprintf(out, " \\\n%*s", indent, "");
            column = indent;
        } else if (!first) {
            fputc(' ', out);
            column++;
        }
        if (column + wide + ending > width) {
            column = cut_word(out, width - ending, column, command, bytes);
        } else {
            fprintf(out, "%.*s", (int)bytes, command);
            column += wide;
        }
        command += bytes;
        while (*command == ' ') command++;
    }
    fputc('\n', out);
}
