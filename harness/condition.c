#include "condition.h"

#include <ctype.h>
#include <string.h>

#include "base.h"
#include "registry.h"
#include "sweep.h"

static int read_relation(const char **at, enum relation *ret)
{
    static const struct { const char *sign; enum relation relation; } signs[] = {
        {"<=", LESS_EQUAL}, {">=", GREATER_EQUAL}, {"!=", UNEQUAL}, {"==", EQUAL}, {"<", LESS}, {">", GREATER}, {"=", EQUAL}};
    for (int i = 0; i < COUNT(signs); i++)
        if (!strncmp(*at, signs[i].sign, strlen(signs[i].sign))) {
            *ret = signs[i].relation;
            *at += strlen(signs[i].sign);
            return 0;
        }
    return 1;
}

int condition_parse(const char *words, struct place at, struct condition *ret, struct trouble *trouble)
{
    struct condition condition = {.at = at};
    const char      *p = words + strspn(words, " \t");
    char             why[320];
    while (*p) {
        struct comparison *c = &condition.comparison[condition.n];
        if (condition.n == COUNT(condition.comparison)) return fail(trouble, at, "skip %.60s: more than 8 comparisons", words);
        size_t n = 0;
        while (isalnum((unsigned char)p[n]) || p[n] == '_') n++;
        if (!n || n >= sizeof c->name)
            return fail(trouble, at, "skip %.60s: DIM<VALUE is expected at '%.20s', as in batch>64 ctx>=128K", words, p);
        text(c->name, sizeof c->name, "%.*s", (int)n, p);
        p += n;
        p += strspn(p, " \t");
        if (read_relation(&p, &c->relation))
            return fail(trouble, at, "skip %.60s: <, <=, >, >=, = or != is expected behind %s", words, c->name);
        p += strspn(p, " \t");
        if (axis_value(c->name, &p, &c->value, why, sizeof why))
            return fail(trouble, at, "skip %.60s: behind %s, %s", words, c->name, why);
        if (*p && *p != ' ' && *p != '\t') return fail(trouble, at, "skip %.60s: unexpected '%.20s' behind a number", words, p);
        if (!word_is_dimension(c->name)) return word_unknown(trouble, at, c->name, false);
        p += strspn(p, " \t");
        condition.n++;
    }
    *ret = condition;
    return 0;
}

static bool holds(const struct comparison *c, int64_t value)
{
    switch (c->relation) {
    case LESS: return value < c->value;
    case LESS_EQUAL: return value <= c->value;
    case GREATER: return value > c->value;
    case GREATER_EQUAL: return value >= c->value;
    case EQUAL: return value == c->value;
    case UNEQUAL: return value != c->value;
    }
    return false;
}

bool condition_holds(const struct condition *condition, const struct op *op, const int64_t *dim)
{
    for (int i = 0; i < condition->n; i++) {
        int d = op_dim(op, condition->comparison[i].name);
        if (d < 0 || !holds(&condition->comparison[i], dim[d])) return false;
    }
    return condition->n > 0;
}
