/* What follows from counters and row: see profile.h. */
#include "profile.h"

#include <math.h>
#include <string.h>

#include "base.h"
#include "format.h"
#include "machine.h"
#include "quiet.h"
#include "row.h"

double profile_flop(const struct row *row)
{
    return row_is_probe(row) ? NAN : row->flop;
}

bool profile_apart(double ns, double row_ns)
{
    return fabs(ns / row_ns - 1) > QUIET_PLACED - 1;
}

char *profile_doubt(const struct profile *p, const struct row *row, char *ret, size_t size)
{
    const struct breakdown *b = &p->replay;
    double untraced_ns = b->launches ? b->untraced_ns : NAN;
    char share[32], ratio[32];
    size_t n = 0;
    text(ret, size, "%s", "");
    if (breakdown_disturbed(b)) n += strlen(text(ret, size, "not quiet under the tracer: %d of %d launches took longer, %s of all",
        b->disturbed, b->used, percent_text(breakdown_share_pct(b, b->disturbed_ns), share, sizeof share)));
    if (p->disturbed) n += strlen(text(ret + n, size - n, "%snot quiet under the counters: %d of %d passes took longer",
        n ? "; " : "", p->disturbed, p->counters.passes));
    if (profile_apart(untraced_ns, row->t_med_ns)) text(ret + n, size - n, "%snot quiet: untraced, it takes %s of the row's time",
        n ? "; " : "", ratio_text(untraced_ns / row->t_med_ns, ratio, sizeof ratio));
    return ret;
}

struct derived profile_derive(const struct profile *p, const struct row *row, const struct machine *machine)
{
    const struct counters *c = &p->counters;
    struct derived ret;
    double flop = profile_flop(row);
    double declared = row->workspace_B > 0 ? (double)row->workspace_B : 0;
    double written = fmin(declared, fmax(0, c->l2_write_B - p->write_B));
    bool in_dram = written > (double)machine->facts.l2_bytes;
    double dram_B = c->dram_read_B + c->dram_write_B;
    if (isnan(c->l2_write_B)) written = NAN;
    ret.workspace_B = 2 * written;
    ret.l2_reread = (c->l2_read_B - written) / p->read_B;
    ret.dram_reread = (c->dram_read_B - (in_dram ? written : 0)) / p->read_B;
    text(ret.why, sizeof ret.why, "%s", in_dram && ret.dram_reread < 1 ? "the workspace is partly in L2" : "");
    if (*ret.why) ret.dram_reread = NAN;   /* all of it was taken off, though some never came from DRAM */
    ret.pct_read_ceiling = machine->ceilings.read_GBps > 0 ? 100 * dram_B / row->t_med_ns / machine->ceilings.read_GBps : NAN;
    ret.pct_matrix_ceiling =
        machine->ceilings.matrix_GFLOPs > 0 ? 100 * flop / row->t_med_ns / machine->ceilings.matrix_GFLOPs : NAN;
    ret.flop_per_B = flop / (isnan(dram_B) ? row->bytes : dram_B);
    profile_doubt(p, row, ret.doubt, sizeof ret.doubt);
    return ret;
}
