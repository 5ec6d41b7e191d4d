#!/usr/bin/env python3
"""What a person sees, and the files that a run leaves: every command once, on the host engine."""
import csv
import difflib
import io
import json
import os
import re
import shutil
import xml.etree.ElementTree

from common import QUICK, SMALL, SOURCE, TINY, environment, expect, expect_exit, identity, kbench, main, read_rows


def sweep_leaves_a_whole_run(folder):
    out = os.path.join(folder, "run")
    done = kbench("sweep", *TINY, "--rounds", "4", "--out", out)
    expect_exit(done, 0)
    rows = read_rows(out)
    expect(len({row["kernel"] for row in rows}) >= 2, "fewer than two kernels", done)
    for row in rows:
        expect(row["status"] == "ok", f"{row['kernel']}: {row['status']}: {row['reason']}", done)
        low, middle, high = (float(row[name]) for name in ("t_lo_ns", "t_med_ns", "t_hi_ns"))
        expect(0 < low <= middle <= high, f"{row['kernel']}: {low}, {middle}, {high}")
        expect(row["rounds"] == "4" and row["stop"] == "rounds", f"rounds {row['rounds']}, stop {row['stop']}")
        expect(abs(float(row["bytes"]) / middle / float(row["bw_GBps"]) - 1) < 1e-3, "bw_GBps is not bytes / t_med_ns")

    with open(os.path.join(out, "env.json"), encoding="utf-8") as file:
        env = json.load(file, parse_constant=lambda word: expect(False, f"env.json: {word} is no JSON"))
    expect("sweep" in env["command"], "env.json: no command")
    with open(os.path.join(out, "samples.csv"), newline="", encoding="utf-8") as file:
        samples = list(csv.DictReader(file))
    expect(len(samples) == sum(int(row["rounds"]) for row in rows), f"{len(samples)} samples")
    expect(os.path.getsize(os.path.join(out, "log.txt")) > 0, "log.txt is empty")

    # The screen: 80 columns, every kernel, the folder.
    for line in done.stdout.splitlines():
        expect(len(line) <= 80, f"{len(line)} columns: {line}")
    for row in rows:
        expect(row["kernel"] in done.stdout, f"{row['kernel']} is not on the screen", done)
    expect(os.path.basename(out) in done.stdout, "the run folder is not on the screen", done)

    if shutil.which("gnuplot"):
        plots = [name for name in os.listdir(os.path.join(out, "plots")) if name.endswith(".svg")]
        expect(plots, "no plots", done)
        for name in plots:
            xml.etree.ElementTree.parse(os.path.join(out, "plots", name))

    # plan.ini runs the same rows again.
    again = os.path.join(folder, "again")
    expect_exit(kbench("sweep", os.path.join(out, "plan.ini"), "--device", "host", "--no-plots", "--out", again), 0)
    expect([identity(row) for row in read_rows(again)] == [identity(row) for row in rows], "plan.ini gives other rows")


def check_times_nothing(folder):
    done = kbench("check", *TINY, cwd=folder)
    expect_exit(done, 0)
    errors = re.findall(r"^ +(\S+) +ok +error (\S+), 100 % checked$", done.stdout, re.M)
    expect(len(errors) >= 4 and all(0 < float(error) < 3e-3 for _, error in errors), f"{errors}", done)
    expect("4 ok" in done.stdout or f"{len(errors)} ok" in done.stdout, "no count", done)
    expect(not os.listdir(folder), "a check left files")


def reference_seconds(folder):
    """--reference-s: a problem of which the CPU does all, or two items of 128, as it is told."""
    del folder
    row = ["--device", "host", "--row", "attn/host_mma batch=128,heads=8,ctx=256,window=16,topk=32"]
    for seconds, least, most in (("30", 100, 100), ("0", 0.1, 20)):
        done = kbench("check", *row, "--reference-s", seconds)
        expect_exit(done, 0)
        share = re.search(r"^ +attn/host_mma +ok +error \S+, (\S+) % checked$", done.stdout, re.M)
        expect(share and least <= float(share[1]) <= most, f"--reference-s {seconds}: not {least} to {most} % checked", done)


def one_row(folder):
    out = os.path.join(folder, "run")
    done = kbench("sweep", "--row", "attn/host_mma batch=2,heads=8,ctx=256,window=16,topk=32", "--device", "host",
                  "--seed", "7", *QUICK, "--out", out)
    expect_exit(done, 0)
    rows = read_rows(out)
    expect(len(rows) == 1 and rows[0]["kernel"] == "attn/host_mma" and rows[0]["seed"] == "7", f"{rows}", done)
    expect(rows[0]["batch"] == "2" and rows[0]["ctx"] == "256", f"{rows}")


def wrapped_tool_has_the_last_word(folder):
    """--wrap: the tool stands before the worker, which launches once, and is let to say what it saw when the worker is gone. NVTX's
    listener is the tool's to name."""
    tool, said = os.path.join(folder, "tool"), os.path.join(folder, "said")
    with open(tool, "w", encoding="utf-8") as file:
        file.write('#!/bin/sh\n[ -z "${NVTX_INJECTION64_PATH+set}" ] || exit 9\n"$@"\nsleep 1\n'
                   f'echo "worker ended with $?" >{said}\necho summary of the tool >&2\n')
    os.chmod(tool, 0o755)
    done = kbench("check", "--row", "attn/host_perhead batch=1,heads=8,ctx=256", "--device", "host", "--wrap", tool)
    expect_exit(done, 0)
    expect(os.path.exists(said), "the tool was ended before it could say anything", done)
    expect("summary of the tool" in done.stderr and "1 ok" in done.stdout, "no summary, or no row", done)


def seeds_repeat(folder):
    errors = []
    for run in "ab":
        out = os.path.join(folder, run)
        expect_exit(kbench("sweep", *TINY, *QUICK, "--seed", "11", "--out", out), 0)
        errors.append([(identity(row), row["err_rel"]) for row in read_rows(out)])
    expect(errors[0] == errors[1], "the same seed gave other errors")


def seeds_side_by_side(folder):
    """Groups of one run that differ in their seed alone have data of their own, with references of their own."""
    out, job = os.path.join(folder, "run"), os.path.join(folder, "seeds.ini")
    with open(job, "w", encoding="utf-8") as file:
        file.write("[global]\nkernels = attn/host_mma\nheads = 8\nctx = 256\nwindow = 16\ntopk = 32\nbatch = 1\n")
        file.writelines(f"[{seed}]\nseed = {seed}\n" for seed in (2, 3, 4, 5))
    done = kbench("sweep", job, "--device", "host", *QUICK, "--out", out)
    expect_exit(done, 0)
    errors = [row["err_rel"] for row in read_rows(out) if row["status"] == "ok"]
    expect(len(errors) == 4 == len(set(errors)), f"{errors}: not four seeds' own", done)


def dry_run_runs_nothing(folder):
    out = os.path.join(folder, "run")
    done = kbench("sweep", *TINY, "--dry-run", "--out", out)
    expect_exit(done, 0)
    expect("attn/host_mma" in done.stdout and not os.path.exists(out), "a dry run left a folder, or names no kernel", done)
    for name in os.listdir(os.path.join(SOURCE, "sweeps")):
        expect_exit(kbench("sweep", os.path.join(SOURCE, "sweeps", name), "--device", "host", "--dry-run"), 0)


def lists(folder):
    del folder
    for topic in ("ops", "kernels", "devices", "sweeps", "columns", "results"):
        expect_exit(kbench("list", topic), 0)
        done = kbench("list", topic, "--json")
        expect_exit(done, 0)
        json.loads(done.stdout)
    done = kbench("list", "kernels")
    expect("attn/host_mma" in done.stdout and "attn/host_perhead" in done.stdout, "kernels are missing", done)
    golden_columns()


def golden_columns():
    """What the columns mean is part of the interface: others read the files. KBENCH_RENEW=1 writes the file anew."""
    path = os.path.join(SOURCE, "tests", "golden", "columns.txt")
    words = ""
    for file in ("rows", "samples", "scaling", "crossover", "breakdown", "counters", "precision"):
        done = kbench("list", "columns", file)
        expect_exit(done, 0)
        words += done.stdout[:done.stdout.index("\nAlso:")]
        for line in done.stdout.splitlines():
            expect(len(line) <= 80, f"{len(line)} columns: {line}")
    if os.environ.get("KBENCH_RENEW"):
        with open(path, "w", encoding="utf-8") as file:
            file.write(words)
    with open(path, encoding="utf-8") as file:
        wanted = file.read()
    differ = list(difflib.unified_diff(wanted.splitlines(), words.splitlines(), "columns.txt", "list columns", "", "", 0))
    expect(not differ, "other columns than tests/golden/columns.txt has:\n" + "\n".join(differ))


def help_for_all(folder):
    del folder
    done = kbench("--help")
    expect_exit(done, 0)
    commands = re.findall(r"^  kbench (\w+)", done.stdout, re.M)
    expect(len(commands) >= 6, f"commands: {commands}", done)
    for command in commands:
        each = kbench(command, "--help")
        expect_exit(each, 0)
        for line in each.stdout.splitlines():
            expect(len(line) <= 80, f"{len(line)} columns: {line}")
    expect_exit(kbench("--version"), 0)
    expect_exit(kbench(), 2)


def doctor(folder):
    del folder
    done = kbench("doctor", "--device", "host")
    expect_exit(done, 4 if "timer WRONG" in done.stdout else 0)   # of a machine that is busy enough
    for word in ("host", "GB/s", "gnuplot", "CUPTI", "ncu", "nsys", "sanitizer"):
        expect(word in done.stdout, f"no word of {word}", done)
    json.loads(kbench("doctor", "--device", "host", "--json").stdout)
    for line in (done.stdout + kbench("doctor").stdout).splitlines():
        expect(len(line) <= 80, f"{len(line)} columns: {line}")


def wrong_timer(folder):
    """Spins that read as other lengths than were asked for, here by a clock that is slow to read: in words, and exit 4."""
    del folder
    slow = environment(LD_PRELOAD=os.environ["SLOW_CLOCK"])
    done = kbench("doctor", "--device", "host", env=slow)
    expect_exit(done, 4)
    expect(re.search(r"timer WRONG: [1-5] of 5 are off by more than 5 % and 0\.1 us", done.stdout), "the timer passes", done)
    expect_exit(kbench("doctor", "--device", "host", "--json", env=slow), 4)


def report_and_plot(folder):
    out = os.path.join(folder, "run")
    expect_exit(kbench("sweep", *TINY, *QUICK, "--out", out), 0)
    expect(not os.path.exists(os.path.join(out, "plots")) or not os.listdir(os.path.join(out, "plots")), "--no-plots drew plots")
    done = kbench("report", out)
    expect_exit(done, 0)
    expect("attn/host_mma" in done.stdout, "no kernel in the report", done)
    done = kbench("report", "--markdown", out)
    expect_exit(done, 0)
    expect(re.search(r"^\|.*\|$", done.stdout, re.M), "no Markdown table", done)
    expect_exit(kbench("plot", out), 0)
    if shutil.which("gnuplot"):
        expect(any(name.endswith(".svg") for name in os.listdir(os.path.join(out, "plots"))), "no plots")


def comma_locale(folder):
    """Numbers have a point whatever the locale."""
    env = environment(LC_ALL="de_DE.UTF-8", LANG="de_DE.UTF-8")
    out = os.path.join(folder, "run")
    done = kbench("sweep", *TINY, *QUICK, "--out", out, env=env)
    expect_exit(done, 0)
    for row in read_rows(out):
        float(row["t_med_ns"])
        float(row["err_rel"])


def rows_go_through_csv(folder):
    """A reader and writer of another make gives the same cells back."""
    out = os.path.join(folder, "run")
    expect_exit(kbench("sweep", *TINY, *QUICK, "--out", out), 0)
    with open(os.path.join(out, "rows.csv"), newline="", encoding="utf-8") as file:
        text = file.read()
    table = list(csv.reader(io.StringIO(text), strict=True))
    again = io.StringIO()
    csv.writer(again, lineterminator="\n" if "\r\n" not in text else "\r\n").writerows(table)
    expect(list(csv.reader(io.StringIO(again.getvalue()))) == table, "cells changed")


def no_overwriting(folder):
    out = os.path.join(folder, "run")
    expect_exit(kbench("sweep", *TINY, *QUICK, "--out", out), 0)
    with open(os.path.join(out, "rows.csv"), "rb") as file:
        before = file.read()
    done = kbench("sweep", *TINY, *QUICK, "--out", out)
    expect_exit(done, 2)
    expect("--force" in done.stderr, "no word of --force", done)
    with open(os.path.join(out, "rows.csv"), "rb") as file:
        expect(file.read() == before, "rows.csv was overwritten")
    expect_exit(kbench("sweep", *TINY, *QUICK, "--force", "--out", out), 0)


def default_folder(folder):
    """Without --out a run goes to results/runs/ of the tree, and two of the same second do not meet."""
    for name in ("sweeps", "plots"):
        os.symlink(os.path.join(SOURCE, name), os.path.join(folder, name))
    env = environment(KBENCH_ROOT=folder)
    for _ in range(2):
        expect_exit(kbench("sweep", *TINY, *QUICK, env=env), 0)
    expect(len(os.listdir(os.path.join(folder, "results", "runs"))) == 2, "not two runs")


main(sweep_leaves_a_whole_run, check_times_nothing, reference_seconds, one_row, wrapped_tool_has_the_last_word, seeds_repeat,
     seeds_side_by_side, dry_run_runs_nothing, lists, help_for_all, doctor, wrong_timer, report_and_plot, comma_locale,
     rows_go_through_csv, no_overwriting, default_folder)
