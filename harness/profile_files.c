#include "profile_files.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base.h"
#include "csv.h"
#include "file_columns.h"
#include "profile_read.h"
#include "table.h"

static const char *const kind_name[] = {[ACTIVITY_KERNEL] = "kernel", [ACTIVITY_COPY] = "copy", [ACTIVITY_SET] = "set"};

static void put_key(struct csv_out *out, const struct profile_files *f, const struct row *row)
{
    csv_text(out, row->op), csv_text(out, row->kernel), csv_text(out, row->engine);
    for (int d = 0; d < f->n_dims; d++) dim_cell(out, f->dims[d], row_dim(row, f->dims[d]));
    csv_text(out, row->tune), csv_text(out, row->cache), csv_whole(out, row->seed);
}

static int open_one(const struct runfolder *folder, const char *name, bool resume, FILE **ret)
{
    char path[600];
    *ret = fopen(text(path, sizeof path, "%s/%s", folder->path, name), resume ? "ae" : "we");
    return *ret ? 0 : errno;
}

static bool is_empty(FILE *file)
{
    struct stat st;
    return fstat(fileno(file), &st) || !st.st_size;
}

static int write_header(const struct profile_files *f, enum csv_file name, FILE *file)
{
    struct csv_out out = {0};
    file_header(&out, name, f->n_dims, f->dims);
    int error = is_empty(file) ? csv_flush(&out, file) : 0;
    csv_free(&out);
    return error;
}

int profile_files_open(struct profile_files *f, const struct runfolder *folder, bool resume)
{
    *f = (struct profile_files){.n_dims = folder->n_dims, .dims = folder->dims};
    TRY(open_one(folder, "breakdown.csv", resume, &f->breakdown));
    TRY(open_one(folder, "counters.csv", resume, &f->counters));
    TRY(write_header(f, CSV_breakdown, f->breakdown));
    return write_header(f, CSV_counters, f->counters);
}

/* The line of the row in a file that has its keys, or -1. */
static int line_of(const struct sheet *s, const struct runfolder *folder, const struct row *row)
{
    for (int i = 0; i < s->n; i++) {
        struct row key;
        row_clear(&key);
        text(key.op, sizeof key.op, "%s", sheet_text(s, i, "op"));
        text(key.kernel, sizeof key.kernel, "%s", sheet_text(s, i, "kernel"));
        text(key.tune, sizeof key.tune, "%s", sheet_text(s, i, "tune"));
        text(key.cache, sizeof key.cache, "%s", sheet_text(s, i, "cache"));
        if (strcmp(key.kernel, row->kernel) || cell_whole(sheet_text(s, i, "seed"), &key.seed)) continue;
        for (int d = 0; d < folder->n_dims && key.n_dims < MAX_DIMS; d++) {
            const char *cell = sheet_text(s, i, folder->dims[d]);
            if (!*cell || cell_dim(folder->dims[d], cell, &key.dim[key.n_dims].value)) continue;
            text(key.dim[key.n_dims++].name, sizeof key.dim[0].name, "%s", folder->dims[d]);
        }
        if (row_same_key(&key, row)) return i;
    }
    return -1;
}

const struct row *profile_files_lack(const struct runfolder *folder, int *ret_n, int *ret_failed)
{
    const struct row *first = NULL;
    struct sheet      counters, parts;
    char              why[700];
    /* A file that is not there, or is none, is an empty one. */
    if (profile_read_counters(folder->path, &counters, why, sizeof why)) counters = (struct sheet){.n = 0};
    if (profile_read_breakdown(folder->path, &parts, why, sizeof why)) parts = (struct sheet){.n = 0};
    *ret_n = *ret_failed = 0;
    for (int i = 0; i < folder->done.n; i++) {
        const struct row *row = &folder->done.row[i];
        int line = line_of(&counters, folder, row);
        const char *breakdown = line >= 0 ? sheet_text(&counters, line, "breakdown") : "";
        bool traced = !strcmp(breakdown, "ok");
        *ret_failed += *breakdown && !traced;
        if (!(row->t_med_ns > 0) || (line >= 0 && (!traced || line_of(&parts, folder, row) >= 0))) continue;
        if (!first) first = row;
        ++*ret_n;
    }
    sheet_free(&counters), sheet_free(&parts);
    return first;
}

void profile_files_close(struct profile_files *f)
{
    if (f->breakdown) fclose(f->breakdown);
    if (f->counters) fclose(f->counters);
    *f = (struct profile_files){0};
}

static void put_extent(struct csv_out *out, const int32_t extent[3])
{
    char words[40] = "";
    if (extent[0] > 0) text(words, sizeof words, "%dx%dx%d", extent[0], extent[1], extent[2]);
    csv_text(out, words);
}

static void put_shape(struct csv_out *out, const struct launch_shape *shape)
{
    put_extent(out, shape->grid), put_extent(out, shape->block), put_extent(out, shape->cluster);
    csv_whole(out, shape->grid[0] > 0 ? shape->shared_B : INT64_MIN);
}

/* gaps, overlap, span: lines without a name. */
static void put_sum(struct csv_out *out, const struct profile_files *f, const struct row *row, const char *pass,
    const struct breakdown *b, const char *part, int64_t total_ns)
{
    int64_t calls = (int64_t)b->used * b->calls;
    put_key(out, f, row);
    csv_text(out, pass), csv_text(out, part), csv_text(out, ""), csv_text(out, "");
    csv_whole(out, INT64_MIN), csv_whole(out, calls), csv_whole(out, total_ns);
    csv_real(out, (double)total_ns / (double)calls), csv_real(out, breakdown_share_pct(b, total_ns));
    for (int i = 0; i < 4; i++) csv_whole(out, INT64_MIN);
    put_shape(out, &(struct launch_shape){.shared_B = 0});
    csv_end(out);
}

static void put_breakdown(struct csv_out *out, const struct profile_files *f, const struct row *row, const char *pass,
    const struct breakdown *b)
{
    int64_t calls = (int64_t)b->used * b->calls;
    if (*b->failed) return;   /* why is in counters.csv: shares of what was not seen whole are nobody's */
    for (int i = 0; i < b->n; i++) {
        const struct part *p = &b->part[i];
        put_key(out, f, row);
        csv_text(out, pass), csv_text(out, kind_name[p->kind]), csv_text(out, p->name), csv_text(out, p->range);
        csv_whole(out, p->count), csv_whole(out, calls), csv_whole(out, p->total_ns);
        csv_real(out, (double)p->total_ns / (double)calls), csv_real(out, breakdown_share_pct(b, p->total_ns));
        csv_whole(out, p->min_ns), csv_whole(out, p->max_ns), csv_whole(out, p->gap_ns);
        csv_whole(out, p->kind == ACTIVITY_KERNEL ? INT64_MIN : p->bytes);
        put_shape(out, &p->shape);
        csv_end(out);
    }
    if (!b->used) return;
    put_sum(out, f, row, pass, b, "gaps", b->gap_ns);
    put_sum(out, f, row, pass, b, "overlap", b->overlap_ns);
    put_sum(out, f, row, pass, b, "span", b->span_ns);
}

static void put_whole_if(struct csv_out *out, bool there, int64_t value)
{
    csv_whole(out, there ? value : INT64_MIN);
}

static void put_head(struct csv_out *out, const struct row *row, const struct profile *p)
{
    const struct breakdown *b = &p->replay;
    bool traced = b->launches > 0, eager = p->eager.launches > 0 && !*p->eager.failed;
    const int64_t health[] = {b->records, b->dropped, b->zero_time, b->reversed, b->unmatched, b->missing, b->duplicates,
        b->launches, b->used, b->disturbed};
    csv_real(out, row->t_med_ns), csv_real(out, profile_flop(row)), csv_real(out, row->bytes);
    csv_text(out, *b->failed ? b->failed : traced ? "ok" : "");
    csv_real(out, traced ? breakdown_call_ns(b) : NAN), csv_real(out, traced ? b->untraced_ns : NAN);
    csv_real(out, traced ? b->ratio : NAN);
    csv_real(out, traced ? (breakdown_call_ns(b) - b->untraced_ns) / b->kernels_per_call : NAN);
    csv_real(out, eager ? breakdown_call_ns(&p->eager) : NAN);
    csv_real(out, traced ? b->kernels_per_call : NAN);
    put_whole_if(out, eager, p->eager.kernels);
    for (int i = 0; i < COUNT(health); i++) put_whole_if(out, traced, health[i]);
    csv_real(out, traced && b->used ? breakdown_share_pct(b, b->disturbed_ns) : NAN);
    put_whole_if(out, traced, b->mapped);
}

static void put_tail(struct csv_out *out, const struct row *row, const struct profile *p, const struct machine *machine)
{
    struct derived d = profile_derive(p, row, machine);
    char why[1100];
    put_whole_if(out, p->counters.passes > 0, p->counters.passes);
    put_whole_if(out, p->counters.passes > 0, p->disturbed);
    put_whole_if(out, p->counters.passes > 0, p->calls);
    csv_real(out, p->read_B), csv_real(out, p->write_B), csv_whole(out, row->workspace_B);
    csv_real(out, d.workspace_B), csv_real(out, d.l2_reread), csv_real(out, d.dram_reread);
    csv_real(out, d.pct_read_ceiling), csv_real(out, d.pct_matrix_ceiling), csv_real(out, d.flop_per_B);
    const struct { const char *label, *words; } said[] = {{"", p->note}, {WHY_EAGER, p->eager.failed},
        {WHY_COUNTERS, p->counters.why}, {WHY_DRAM, d.why}, {"", d.doubt}};
    size_t n = 0;
    *why = 0;
    for (int i = 0; i < COUNT(said); i++)
        if (*said[i].words)
            n += strlen(text(why + n, sizeof why - n, "%s%s%s", n ? "; " : "", said[i].label, said[i].words));
    csv_text(out, why);
}

static void put_counters(struct csv_out *out, const struct profile_files *f, const struct row *row, const struct profile *p,
    const struct machine *machine)
{
    put_key(out, f, row);
    put_head(out, row, p);
    for (int i = 0; i < n_counters; i++)
        csv_real(out, *(const double *)((const char *)&p->counters + counter_columns[i].offset));
    put_tail(out, row, p, machine);
    csv_end(out);
}

int profile_files_write(struct profile_files *f, const struct row *row, const struct profile *p, const struct machine *machine)
{
    struct csv_out out = {0};
    put_breakdown(&out, f, row, "replay", &p->replay);
    put_breakdown(&out, f, row, "eager", &p->eager);
    int error = out.n ? csv_flush(&out, f->breakdown) : 0;
    put_counters(&out, f, row, p, machine);
    if (!error) error = csv_flush(&out, f->counters);
    csv_free(&out);
    return error;
}

int64_t profile_files_at(const struct profile_files *f)
{
    struct stat st;
    return fstat(fileno(f->counters), &st) ? -1 : (int64_t)st.st_size;
}

int profile_files_again(struct profile_files *f, int64_t at, int n, const struct profiled *of, const struct machine *machine)
{
    struct csv_out out = {0};
    if (at < 0) return EIO;
    for (int i = 0; i < n; i++) put_counters(&out, f, &of[i].row, of[i].profile, machine);
    bool cut = !ftruncate(fileno(f->counters), (off_t)at) && !fseeko(f->counters, (off_t)at, SEEK_SET);
    int error = cut ? csv_flush(&out, f->counters) : errno;
    csv_free(&out);
    return error;
}
