"""A cost that follows max_ctx is found, named and repeated; one that is declared is shown; a flat kernel is left alone.

usage: test_growth.py PROGRAM SOURCE PLANTED [TEST...]
"""
import csv
import os
import re
import shlex
import sys

PLANTED = os.path.abspath(sys.argv.pop(3))

from common import SOURCE, Skip, expect, expect_exit, kbench, main, read_rows  # noqa: E402  (after what common.py does not know)

# A live context of 32 entries under a maximum of up to 262,208: whoever touches the width takes many times as long.
SIZES = ["-a", "batch=2", "-a", "ctx=128", "-a", "max_ctx=8K,64K,1M", "--device", "host", "--max-time", "300ms"]


def sweep(name, folder, *more, sizes=SIZES):
    plugin = os.path.join(PLANTED, name + ".so")
    return kbench("sweep", "--plugin", plugin, "-k", "plugin/*", "--skip", "indexer/*", "--out", folder, *sizes, *more)


def scaling(folder):
    with open(os.path.join(folder, "scaling.csv"), newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def hidden_growth_fails(folder):
    for turn in range(3):   # a machine as busy as can be leaves it open, and says so
        run = os.path.join(folder, f"run{turn}")
        done = sweep("hidden_max", run, "--no-plots")
        if done.returncode:
            break
        expect([one["verdict"] for one in scaling(run)] == ["open"], f"{scaling(run)}", done)
    expect_exit(done, 1)
    rows = read_rows(run)
    expect(all(row["status"] == "ok" for row in rows), "the rows themselves are right", done)
    again = [row for row in rows if row["reason"].startswith("measured again")]
    expect(len(rows) == 7 and {row["max_ctx"] for row in again} == {"8192", "1048576"}, "both ends are measured again, twice", done)
    found = scaling(run)
    expect(len(found) == 1 and found[0]["dim"] == "max_ctx" and found[0]["verdict"] == "above", f"{found}", done)
    one = found[0]
    expect(one["points"] == "3" and one["from"] == "8192" and one["to"] == "1048576" and one["unit"] == "tokens", f"{one}")
    expect(one["declared"] == "0" and one["ideal"] == "0" and one["max_ctx"] == "" and one["tail"] == "page0", f"{one}")
    expect(float(one["ratio_lo"]) > 1.05 and float(one["exponent_lo"]) <= float(one["exponent"]), f"{one}")
    expect("1 growth above its declaration" in done.stdout and "declared flat" in done.stdout, "the report says so", done)
    expect(done.stdout.count("\nindexer  max_ctx=") == 3, "each problem is shown once", done)
    # The same from the rows alone, on both kinds of page.
    for form in [], ["--markdown"]:
        report = kbench("report", run, "--strict", *form)
        expect_exit(report, 1)
        expect(one["repeat"].split(" -k ")[0] in report.stdout and "above" in report.stdout, "report", report)
    expect_exit(kbench("report", run), 0)
    # The line that repeats it does.
    words = shlex.split(one["repeat"])
    expect(words[:2] == ["./kbench", "sweep"] and "max_ctx=8K,64K,1M" in words and "ctx=128" in words, one["repeat"])
    again = os.path.join(folder, "again")
    repeated = kbench(*words[1:], "--skip", "indexer/*", "--max-time", "300ms", "--no-plots", "--out", again)
    expect([one["verdict"] in ("above", "open") for one in scaling(again)] == [True], "the line repeats it", repeated)


def positions(run, kernel):
    """Of the kernel's rows that were measured again: where in their rounds they ran."""
    rows = [row for row in read_rows(run, every=True) if row["kernel"] == kernel]
    with open(os.path.join(run, "samples.csv"), newline="", encoding="utf-8") as file:
        samples = [sample["position"] for sample in csv.DictReader(file) if sample["kernel"] == kernel]
    found = set()
    for row in rows:
        taken, samples = samples[:int(row["rounds"])], samples[int(row["rounds"]):]
        if row["reason"].startswith("measured again"):
            found |= set(taken)
    return found


def beside(name, folder, *more, sizes=SIZES):
    """With `flat` in the same rounds."""
    done = sweep(name, folder, "--plugin", os.path.join(PLANTED, "flat.so"), "--no-plots", *more, sizes=sizes)
    return done, read_rows(folder, every=True)


def growth_is_confirmed_beside_the_others(folder):
    for turn in range(3):
        run = os.path.join(folder, f"run{turn}")
        done, rows = beside("hidden_max", run)
        if done.returncode:
            break
    expect_exit(done, 1)
    confirmed = [row for row in rows if row["reason"].startswith("measured again: a growth")]
    expect(all(a["max_ctx"] != b["max_ctx"] for a, b in zip(confirmed, confirmed[1:])), "who keeps company leaves a row", done)
    again = [row for row in confirmed if row["kernel"] == "plugin/hidden_max"]
    expect({row["max_ctx"] for row in again} == {"8192", "1048576"} and len(again) == 4, f"{again}", done)
    expect(all(float(row["err_rel"]) < 1e-3 for row in again), "they are checked again", done)
    expect(positions(run, "plugin/hidden_max") == {"0", "1"}, "beside the other kernel, as the first time", done)


def profiled_growth_is_confirmed(folder):
    """Of a profile, too: it fails as a sweep does, and no sooner. Its lines of counters.csv are one a row all the same."""
    sizes = ["-a", "batch=2", "-a", "ctx=2K", "-a", "max_ctx=8K,64K,512K", "--device", "host", "--max-time", "300ms"]
    plugin = os.path.join(PLANTED, "hidden_max.so")
    for turn in range(3):
        run = os.path.join(folder, f"run{turn}")
        done = kbench("profile", "--plugin", plugin, "-k", "plugin/*", "--skip", "indexer/*", "--out", run, *sizes, "--no-plots",
                      "--reference-s", "0", timeout=200)
        if "above" in [one["verdict"] for one in scaling(run)]:
            break
    expect_exit(done, 1)
    confirmed = [row for row in read_rows(run, every=True) if row["reason"].startswith("measured again: a growth")]
    expect([row["max_ctx"] for row in confirmed] == ["524288", "8192"] * 2, "both ends are measured again, twice", done)
    with open(os.path.join(run, "counters.csv"), newline="", encoding="utf-8") as file:
        expect([line["max_ctx"] for line in csv.DictReader(file)] == ["8192", "65536", "524288"], "a line a row", done)
    expect(kbench("report", run).stdout.count("traced: ") == 3, "a tree a row")


def marked_rows_keep_their_company(folder):
    for turn in range(3):
        run = os.path.join(folder, f"run{turn}")
        done, rows = beside("two_modes", run, "--max-time", "1s", sizes=[*SIZES[:4], "-a", "max_ctx=8K", "--device", "host"])
        expect_exit(done, 0)
        first, *again = [row for row in rows if row["kernel"] == "plugin/two_modes"]
        if again:
            break
    if not again:
        raise Skip("the machine is so busy that two times are one")
    expect(first["marks"], "two times are seen")
    expect(positions(run, "plugin/two_modes") == {"0", "1"}, "beside the other kernel, as the first time", done)
    flat = [row for row in rows if row["kernel"] == "plugin/flat"]
    expect(len(flat) == 1 or flat[0]["marks"], "who only keeps company leaves no row", done)


def declared_growth_is_shown(folder):
    run = os.path.join(folder, "run")
    plugin = os.path.join(PLANTED, "declared_max.so")
    done = sweep("declared_max", run)
    expect_exit(done, 0)
    name = "plugin/declared_max O(max_ctx)"
    expect(name in done.stdout and name in done.stderr, "report and progress name it", done)
    expect({row["declared"] for row in read_rows(run)} == {"max_ctx^1"}, "rows.csv holds what was declared")
    expect([one["verdict"] for one in scaling(run)] == ["ok"], f"{scaling(run)}")
    expect(re.search(re.escape(name) + r"\s+max_ctx\^", done.stdout), "its growth is shown", done)
    report = kbench("report", run, "--markdown")
    expect(f"`{name}`" in report.stdout and "| max_ctx | 8K..1M |" in report.stdout, "Markdown", report)
    for words in ["list", "kernels"], ["sweep", "-k", "plugin/*", *SIZES, "--dry-run"]:
        shown = kbench(*words, "--plugin", plugin)
        expect(name in re.sub(r"\s+", " ", shown.stdout), " ".join(words), shown)
    plots = os.path.join(run, "plots")
    drawn = [file for file in os.listdir(plots) if file.startswith("indexer-max_ctx") and file.endswith(".dat")] \
        if os.path.isdir(plots) else []
    if "gnuplot not found" not in done.stderr:
        expect(drawn, "time is drawn against max_ctx", done)
        with open(os.path.join(plots, drawn[0]), encoding="utf-8") as file:
            expect(name in file.read(), "the plot's key names it")


def flat_stays_flat(folder):
    run = os.path.join(folder, "run")
    done = sweep("flat", run, "--no-plots")
    expect_exit(done, 0)
    expect([one["verdict"] in ("ok", "open") for one in scaling(run)] == [True], f"{scaling(run)}", done)
    said = done.stdout.replace("?: may be above", "")   # of a busy machine, which leaves it open; a line may end there
    expect(" O(" not in said and not re.search(r" above$| above:", said, re.M), "nothing to say of it", done)


def few_sizes_give_no_verdict(folder):
    run = os.path.join(folder, "run")
    done = sweep("hidden_max", run, "--no-plots", sizes=[*SIZES[:4], "-a", "max_ctx=8K,1M", *SIZES[6:]])
    expect_exit(done, 0)
    expect(scaling(run) == [] and "growth" not in done.stdout, "two sizes are no series", done)
    with open(os.path.join(run, "scaling.csv"), encoding="utf-8") as file:
        expect(file.read().startswith("op,kernel,engine,batch,ctx,max_ctx,tail,ragged,tune,"), "a header stands there all the same")


def hot_rows_are_not_judged(folder):
    run = os.path.join(folder, "run")
    expect_exit(sweep("hidden_max", run, "--no-plots", "--cache", "hot"), 0)
    expect([one["verdict"] for one in scaling(run)] == [""], f"{scaling(run)}")


def sweeps_plan(folder):
    del folder
    for name in sorted(os.listdir(os.path.join(SOURCE, "sweeps"))):
        done = kbench("sweep", os.path.join(SOURCE, "sweeps", name), "--device", "host", "--dry-run")
        expect_exit(done, 0)
        expect("left out" not in done.stderr, f"{name}: no problem of it is refused", done)


main(sweeps_plan, hidden_growth_fails, growth_is_confirmed_beside_the_others, profiled_growth_is_confirmed,
     marked_rows_keep_their_company, declared_growth_is_shown, flat_stays_flat, few_sizes_give_no_verdict, hot_rows_are_not_judged)
