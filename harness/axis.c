/* Axis syntax: "batch=1,16,64", "ctx=8K:128K:*2", "topk=64:512:+64" and mixes; "tail=page0,unique" where values have words. */
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "base.h"
#include "sweep.h"

enum { MAX_VALUES = 4096, SHOWN = 48 };

struct reader {
    const char *at, *list;  /* next character; where the list begins */
    const char *name;       /* of the axis, for messages */
    char       *error;
    size_t      size;
};

static int complain(const struct reader *r, const char *what, int length, const char *why)
{
    if (length > SHOWN) length = SHOWN;
    text(r->error, r->size, "%s=%.*s: %s", r->name, length, what, why);
    return 1;
}

/* A whole number with an optional sign and K or M. Leaves `at` behind it. */
int axis_number(const char **at, int64_t *ret, const char **ret_why)
{
    const char *p = *at;
    bool        negative = *p == '-';
    int64_t     value = 0, unit = 1;
    p += negative;
    if (*p < '0' || *p > '9') return *ret_why = "a whole number is expected, with K or M for powers of 1024", 1;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *p - '0', &value))
            return *ret_why = "more than 64 bits hold", 1;
    if (*p == 'K' || *p == 'k') unit = 1 << 10, p++;
    else if (*p == 'M' || *p == 'm') unit = 1 << 20, p++;
    if (__builtin_mul_overflow(value, unit, &value)) return *ret_why = "more than 64 bits hold", 1;
    *ret = negative ? -value : value;
    *at = p;
    return 0;
}

int axis_value(const char *name, const char **at, int64_t *ret, char *ret_why, size_t size)
{
    const char *why = "";
    if (isalpha((unsigned char)**at) && dim_names(name)) return dim_read_word(name, at, ret, ret_why, size);
    if (!axis_number(at, ret, &why)) return 0;
    char choices[160];
    if (dim_names(name)) text(ret_why, size, "a word is expected: %s", dim_choices(name, choices, sizeof choices));
    else text(ret_why, size, "%s", why);
    return 1;
}

static int number(struct reader *r, int64_t *ret)
{
    const char *begin = r->at;
    char        why[320];
    if (!axis_value(r->name, &r->at, ret, why, sizeof why)) return 0;
    if (*begin && *begin != ',' && *begin != ':') return complain(r, begin, (int)strcspn(begin, ",:"), why);
    return complain(r, r->list, (int)strlen(r->list), *begin ? "a value is missing" : "a value is missing at the end");
}

static int append(struct reader *r, struct axis *a, int64_t value, const char *item, int length)
{
    if (a->n == MAX_VALUES) return complain(r, item, length, "more than 4096 values; take a larger step");
    for (int i = 0; i < a->n; i++)
        if (a->value[i] == value) {
            char why[64];
            return complain(r, item, length, text(why, sizeof why, "the value %lld is there twice", (long long)value));
        }
    if (a->n % 64 == 0) a->value = must_grow(a->value, (size_t)a->n + 64, sizeof *a->value);
    a->value[a->n++] = value;
    return 0;
}

/* lo:hi:*factor or lo:hi:+step; `at` stands behind lo's colon. */
static int range(struct reader *r, struct axis *a, int64_t lo, const char *item)
{
    int     length = (int)strcspn(item, ",");
    int64_t hi, step;
    TRY(number(r, &hi));
    if (*r->at != ':') return complain(r, item, length, "a range needs a step, as in 1:16:*2 or 64:512:+64");
    char how = *++r->at;
    if (how != '*' && how != '+') return complain(r, item, length, "a step begins with * or +, as in 1:16:*2 or 64:512:+64");
    r->at++;
    TRY(number(r, &step));
    if (lo > hi) return complain(r, item, length, "the range ends below its start");
    if (how == '+' && step <= 0) return complain(r, item, length, "the step must be at least +1");
    if (how == '*' && step <= 1) return complain(r, item, length, "the factor must be at least *2");
    if (how == '*' && lo <= 0) return complain(r, item, length, "a range by factors must start above 0");
    for (int64_t v = lo; v <= hi;) {
        TRY(append(r, a, v, item, length));
        if (how == '*' ? __builtin_mul_overflow(v, step, &v) : __builtin_add_overflow(v, step, &v)) break;
    }
    return 0;
}

static int list(struct reader *r, struct axis *a)
{
    for (;;) {
        const char *item = r->at;
        int64_t     value;
        TRY(number(r, &value));
        if (*r->at == ':') {
            r->at++;
            TRY(range(r, a, value, item));
        } else {
            TRY(append(r, a, value, item, (int)strcspn(item, ",")));
        }
        if (!*r->at) return 0;
        if (*r->at != ',')
            return complain(r, item, (int)strcspn(item, ","), "unexpected characters behind the number");
        r->at++;
    }
}

int axis_parse(const char *text_, struct axis *ret, char *ret_error, size_t size)
{
    const char *equals = strchr(text_, '=');
    size_t      length = equals ? (size_t)(equals - text_) : 0;
    *ret = (struct axis){0};
    if (!equals || !length) {
        text(ret_error, size, "%.*s: name=LIST is expected, as in batch=1,16,64 or ctx=8K:128K:*2", SHOWN, text_);
        return 1;
    }
    if (length >= sizeof ret->name) {
        text(ret_error, size, "%.*s: the name is longer than %zu characters", SHOWN, text_, sizeof ret->name - 1);
        return 1;
    }
    memcpy(ret->name, text_, length);
    struct reader r = {.at = equals + 1, .list = equals + 1, .name = ret->name, .error = ret_error, .size = size};
    int           error = list(&r, ret);
    if (error) axis_free(ret);
    return error;
}

void axis_free(struct axis *a)
{
    free(a->value);
    a->value = NULL;
    a->n = 0;
}
