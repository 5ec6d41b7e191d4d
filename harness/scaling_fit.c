/* The fit of one series: weighted least squares in t0 and a for each exponent of a grid, the best of which wins. */
#include <math.h>
#include "base.h"
#include "scaling.h"

static const double STEP = 0.01, MOST = 4;
static const double CHI2_1 = 3.84, CHI2_2 = 5.99;   /* 95 % of chi-square with one and two degrees of freedom */

/* What of a time is noise: its own interval (95 %: 1.96 deviations each side), and what rows measured apart differ by. */
static double deviation(const struct scaling_point *p, double apart)
{
    double own = p->hi >= p->lo ? (p->hi - p->lo) / (2 * 1.96) : 0, beyond = apart * p->t / 1.96;
    return sqrt(own * own + beyond * beyond) + 1e-6 * p->t;
}

/* The best t0 >= 0 and a >= 0 at one exponent; a counts in units of the largest x. Returns the weighted sum of squares. */
static double solve(const struct scaling_point *p, int n, double apart, double exponent, double *ret_t0, double *ret_a)
{
    double w = 0, wu = 0, wuu = 0, wt = 0, wut = 0;
    for (int i = 0; i < n; i++) {
        double s = deviation(&p[i], apart), weight = 1 / (s * s), u = pow(p[i].x / p[n - 1].x, exponent);
        w += weight, wu += weight * u, wuu += weight * u * u, wt += weight * p[i].t, wut += weight * u * p[i].t;
    }
    double det = w * wuu - wu * wu, t0 = (wuu * wt - wu * wut) / det, a = (w * wut - wu * wt) / det;
    if (!(det > 1e-12 * w * wuu) || !(a >= 0)) t0 = wt / w, a = 0;
    else if (t0 < 0) t0 = 0, a = wut / wuu;
    double sum = 0;
    for (int i = 0; i < n; i++) {
        double off = (p[i].t - t0 - a * pow(p[i].x / p[n - 1].x, exponent)) / deviation(&p[i], apart);
        sum += off * off;
    }
    *ret_t0 = t0, *ret_a = a;
    return sum;
}

static double misfit(const struct scaling_point *p, int n, double apart, double exponent)
{
    double t0, a;
    return solve(p, n, apart, exponent, &t0, &a);
}

/* The minimum between two neighbours of the grid. */
static double refine(const struct scaling_point *p, int n, double apart, double lo, double hi)
{
    for (int i = 0; i < 40; i++) {
        double x = lo + (hi - lo) / 3, y = hi - (hi - lo) / 3;
        if (misfit(p, n, apart, x) <= misfit(p, n, apart, y)) hi = y;
        else lo = x;
    }
    return (lo + hi) / 2;
}

/* The last exponent on one side of the best whose misfit is not yet too large. */
static double edge(const struct scaling_point *p, int n, double apart, double best, double step, double bar)
{
    double at = best;
    while (at + step > 0 && at + step <= MOST && misfit(p, n, apart, at + step) <= bar) at += step;
    if (at + step <= 0) return 0;
    if (at + step > MOST) return INFINITY;
    double lo = at, hi = at + step;
    for (int i = 0; i < 20; i++) {
        double middle = (lo + hi) / 2;
        if (misfit(p, n, apart, middle) <= bar) lo = middle;
        else hi = middle;
    }
    return lo;
}

/* Nothing says that the time grows: the exponent is at most what the ends' intervals leave room for. */
static struct fit flat(const struct scaling_point *p, int n, double apart)
{
    struct fit ret = {0};
    double w = 0, wt = 0;
    for (int i = 0; i < n; i++) {
        double s = deviation(&p[i], apart);
        w += 1 / (s * s), wt += p[i].t / (s * s);
    }
    double from = p[0].t - 1.96 * deviation(&p[0], apart), to = p[n - 1].t + 1.96 * deviation(&p[n - 1], apart);
    ret.t0 = wt / w, ret.a = 0;
    ret.hi = from > 0 ? fmax(0, log(to / from) / log(p[n - 1].x / p[0].x)) : INFINITY;
    return ret;
}

/* t = max(t0, a * x^e): a constant through the first k points, a power (a line in logarithms) through the others. Returns the
 * weighted sum of squares. */
static double hinge_at(const struct scaling_point *p, int n, double apart, int k, struct fit *ret)
{
    double w = 0, wt = 0, v = 0, vx = 0, vy = 0, vxx = 0, vxy = 0, sum = 0;
    for (int i = 0; i < n; i++) {
        double s = deviation(&p[i], apart), weight = 1 / (s * s), share = p[i].t * p[i].t / (s * s);
        double x = log(p[i].x / p[n - 1].x), y = log(p[i].t);
        if (i < k) w += weight, wt += weight * p[i].t;
        else v += share, vx += share * x, vy += share * y, vxx += share * x * x, vxy += share * x * y;
    }
    double det = v * vxx - vx * vx, e = (v * vxy - vx * vy) / det, a = exp((vy - e * vx) / v);
    for (int i = 0; i < n; i++) {
        double off = (p[i].t - fmax(wt / w, a * pow(p[i].x / p[n - 1].x, e))) / deviation(&p[i], apart);
        sum += off * off;
    }
    double reach = 1.96 * sqrt(v / det * (n > 4 ? fmax(1, sum / (n - 4)) : 1));
    *ret = (struct fit){.t0 = wt / w, .a = a * pow(p[n - 1].x, -e), .exponent = e, .lo = fmax(0, e - reach), .hi = e + reach,
        .hinge = true};
    return e > 0 ? sum : INFINITY;
}

/* A machine that is not full yet takes as long for two as for one. Only where the sum t0 + a * x^e doesn't fit and this does. */
static void try_hinge(const struct scaling_point *p, int n, double apart, double least, struct fit *ret)
{
    struct fit best = *ret;
    for (int k = 2; k <= n - 2; k++) {
        struct fit fit;
        double     sum = hinge_at(p, n, apart, k, &fit);
        if (sum < least / 2) least = 2 * sum, best = fit;
    }
    *ret = best;
}

struct fit scaling_fit(const struct scaling_point *p, int n, double apart)
{
    struct fit ret = {NAN, NAN, NAN, NAN, NAN};
    for (int i = 0; i < n; i++)
        if (!(p[i].t > 0) || !isfinite(p[i].t) || !(p[i].x > 0)) return ret;
    if (n < SCALING_POINTS) return ret;
    double best = STEP, least = INFINITY;
    for (int i = 1; i * STEP <= MOST + 1e-9; i++) {
        double sum = misfit(p, n, apart, i * STEP);
        if (sum < least) least = sum, best = i * STEP;
    }
    double scale = n > 3 ? fmax(1, least / (n - 3)) : 1;   /* a model that doesn't fit knows its exponent less well */
    double constant = 0, t0, a;
    struct fit level = flat(p, n, apart);
    for (int i = 0; i < n; i++) {
        double off = (p[i].t - level.t0) / deviation(&p[i], apart);
        constant += off * off;
    }
    if (constant - least <= CHI2_2 * scale || !(p[n - 1].t > SCALING_FLAT * p[0].t)) return level;
    best = refine(p, n, apart, fmax(best - STEP, 1e-3), fmin(best + STEP, MOST));
    least = solve(p, n, apart, best, &t0, &a);
    ret = (struct fit){.t0 = t0, .a = a * pow(p[n - 1].x, -best), .exponent = best};
    ret.lo = edge(p, n, apart, best, -STEP, least + CHI2_1 * scale);
    ret.hi = edge(p, n, apart, best, STEP, least + CHI2_1 * scale);
    if (n >= 5 && least > n) try_hinge(p, n, apart, least, &ret);
    return ret;
}
