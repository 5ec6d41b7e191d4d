#include "csv.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base.h"

locale_t c_numbers(void)
{
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

char *real_text(double value, char *ret)
{
    ret[0] = '\0';
    if (isnan(value))
        return ret;
    locale_t before = c_numbers();
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(ret, 32, "%.*g", digits, value);
        if (strtod(ret, NULL) == value)
            break;
    }
    uselocale(before);
    return ret;
}

static void append(struct csv_out *out, const char *bytes, size_t n)
{
    if (out->n + n + 1 > out->room) {
        out->room = 2 * (out->n + n) + 1024;
        out->text = must_grow(out->text, out->room, 1);
    }
    memcpy(out->text + out->n, bytes, n);
    out->n += n;
    out->text[out->n] = '\0';
}

static void append_separator(struct csv_out *out)
{
    if (out->cells++)
        append(out, ",", 1);
}

/* Leading and trailing blanks are quoted as well: spreadsheets eat them. */
static bool needs_quotes(const char *cell)
{
    size_t n = strlen(cell);
    return strpbrk(cell, ",\"\r\n") || (n && (cell[0] == ' ' || cell[n - 1] == ' '));
}

void csv_text(struct csv_out *out, const char *cell)
{
    append_separator(out);
    if (!needs_quotes(cell)) {
        append(out, cell, strlen(cell));
        return;
    }
    append(out, "\"", 1);
    for (const char *c = cell; *c; c++) {
        if (*c == '"')
            append(out, "\"", 1);
        append(out, c, 1);
    }
    append(out, "\"", 1);
}

void csv_whole(struct csv_out *out, int64_t value)
{
    char digits[24];
    append_separator(out);
    if (value != INT64_MIN)
        append(out, digits, (size_t)snprintf(digits, sizeof(digits), "%" PRId64, value));
}

void csv_real(struct csv_out *out, double value)
{
    char digits[32];
    append_separator(out);
    append(out, digits, strlen(real_text(value, digits)));
}

void csv_end(struct csv_out *out)
{
    append(out, "\n", 1);
    out->cells = 0;
}

int csv_flush(struct csv_out *out, FILE *file)
{
    errno = 0;
    bool whole = fwrite(out->text, 1, out->n, file) == out->n && !fflush(file);
    int error = whole ? 0 : errno ? errno : EIO;
    out->n = 0;
    out->cells = 0;
    return error;
}

void csv_free(struct csv_out *out)
{
    free(out->text);
    *out = (struct csv_out){0};
}

int file_read(const char *path, char **ret, size_t *ret_size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return errno;
    char *bytes = NULL;
    size_t room = 0, n = 0, got;
    errno = 0;
    do {
        room = 2 * room + (1 << 16);
        bytes = must_grow(bytes, room, 1);
        got = fread(bytes + n, 1, room - n - 1, file);
        n += got;
    } while (got && n + 1 == room);
    int error = ferror(file) ? (errno ? errno : EIO) : 0;
    fclose(file);
    if (error) {
        free(bytes);
        return error;
    }
    bytes[n] = '\0';
    *ret = bytes;
    *ret_size = n;
    return 0;
}

int csv_open(struct csv_in *in, const char *path)
{
    *in = (struct csv_in){0};
    TRY(file_read(path, &in->text, &in->size));
    if (in->size >= 3 && !memcmp(in->text, "\xEF\xBB\xBF", 3))  /* a spreadsheet saved it */
        in->at = 3;
    return 0;
}

static void add_cell(struct csv_in *in, char *cell)
{
    if (in->n == in->room) {
        in->room = 2 * in->room + 64;
        in->cell = must_grow(in->cell, (size_t)in->room, sizeof(in->cell[0]));
    }
    in->cell[in->n++] = cell;
}

/* Unquotes in place from *at, which stands behind the opening quote. Leaves it behind the closing one. 0, or -1 where the file ends
 * before. */
static int read_quoted(struct csv_in *in, size_t *at, int *lines, size_t *ret_end)
{
    size_t to = *at;
    for (size_t from = *at; from < in->size; from++) {
        char c = in->text[from];
        if (c == '"' && in->text[from + 1] != '"') {
            *at = from + 1;
            *ret_end = to;
            return 0;
        }
        if (c == '"')
            from++;
        *lines += c == '\n';
        in->text[to++] = c;
    }
    return -1;
}

int csv_next(struct csv_in *in, const char **ret_why)
{
    size_t at = in->at;
    int lines = in->lines;
    in->n = 0;
    for (;;) {
        char *cell = in->text + at;
        size_t end;
        if (in->text[at] == '"') {
            at++;
            cell++;
            if (read_quoted(in, &at, &lines, &end))
                return 0;
        } else {
            at += strcspn(cell, ",\r\n\"");
            end = at;
            if (in->text[at] == '"' && at < in->size)
                return in->line = lines + 1, *ret_why = "a quote within a cell that does not begin with one", -1;
        }
        if (at >= in->size)
            return 0;
        bool crlf = in->text[at] == '\r' && in->text[at + 1] == '\n';
        char after = in->text[at + crlf];
        if (after != ',' && after != '\n') {
            in->line = lines + 1;
            *ret_why = after ? "text behind a closing quote, or a lone carriage return" : "a zero byte: not a text file";
            return -1;
        }
        in->text[end] = '\0';
        add_cell(in, cell);
        at += crlf + 1;
        if (after == '\n')
            break;
    }
    in->at = at;
    in->line = in->lines + 1;
    in->lines = lines + 1;
    return 1;
}

void csv_close(struct csv_in *in)
{
    free(in->text);
    free(in->cell);
    *in = (struct csv_in){0};
}

int cell_whole(const char *cell, int64_t *ret)
{
    char *end = NULL;
    *ret = INT64_MIN;
    if (!*cell)
        return 0;
    errno = 0;
    int64_t value = strtoll(cell, &end, 10);
    if (errno || *end || end == cell)
        return -1;
    *ret = value;
    return 0;
}

int cell_real(const char *cell, double *ret)
{
    char *end = NULL;
    *ret = NAN;
    if (!*cell)
        return 0;
    if (cell[strspn(cell, "+-.0123456789eE")])   /* strtod also takes blanks, hex, nan and inf */
        return -1;
    locale_t before = c_numbers();
    double value = strtod(cell, &end);
    uselocale(before);
    if (*end || end == cell || isinf(value))
        return -1;
    *ret = value;
    return 0;
}
