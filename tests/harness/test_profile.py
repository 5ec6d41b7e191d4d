#!/usr/bin/env python3
"""kbench profile on the host engine: its files add up, its plots are whole, and it goes on where it stopped."""
import csv
import glob
import json
import os
import re
import shutil
import signal
import time
import xml.etree.ElementTree

from common import SOURCE, Skip, TINY, expect, expect_exit, kbench, main, read_rows, start

SHORT = ["--rounds", "4", "--cache", "hot"]


def read(folder, name):
    with open(os.path.join(folder, name), newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, strict=True))


def replace(path, before, after):
    with open(path, encoding="utf-8") as file:
        words = file.read()
    expect(before in words, f"no {before!r} in {path}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(words.replace(before, after, 1))


def key(row):
    names = list(row)
    return tuple(row[name] for name in ("op", "kernel", "tune", "cache", "seed", *names[names.index("engine") + 1:
        names.index("tune")]))


def adds_up(folder):
    out = os.path.join(folder, "run")
    done = kbench("profile", *TINY, *SHORT, "--out", out)
    expect_exit(done, 0)
    rows, counters, parts = read_rows(out), read(out, "counters.csv"), read(out, "breakdown.csv")
    expect(len(counters) == len(rows) > 1, f"{len(rows)} rows, {len(counters)} lines of counters", done)
    expect(set(map(key, counters)) == set(map(key, parts)), "breakdown.csv and counters.csv speak of other rows", done)
    for line in counters:
        expect(line["breakdown"] == "ok" and float(line["traced_ns"]) > 0, f"{line}", done)
        expect(float(line["trace_ratio"]) > 0 and float(line["kernels_per_call"]) == 1, f"{line}")
        expect(bool(line["cycles"]) != bool(line["why"]), f"neither counters nor why not: {line}")
    for row in set(map(key, parts)):
        for way in ("replay", "eager"):
            sums = {"span": 0, "gaps": 0, "overlap": 0, "kernel": 0}
            for part in parts:
                if key(part) == row and part["pass"] == way:
                    sums[part["part"]] += int(part["total_ns"])
            expect(sums["span"] > 0, f"{row}: no {way}")
            expect(sums["kernel"] + sums["gaps"] - sums["overlap"] == sums["span"], f"{row} {way}: {sums}")
    for line in done.stdout.splitlines():
        expect(len(line) <= 80, f"{len(line)} columns: {line}")
    expect("gaps" in done.stdout and "traced" in done.stdout, "no tree", done)
    if shutil.which("gnuplot"):
        for name in ("attn-breakdown.svg", "roofline.svg"):
            xml.etree.ElementTree.parse(os.path.join(out, "plots", name))
            os.unlink(os.path.join(out, "plots", name))
        expect_exit(kbench("plot", out), 0)
        expect(os.path.exists(os.path.join(out, "plots", "roofline.svg")), "plot draws no roofline again")


def goes_on_and_begins_anew(folder):
    out = os.path.join(folder, "run")
    one = [*SHORT, "--no-plots"]
    expect_exit(kbench("profile", *TINY, *one, "--out", out), 0)
    before, parts = read(out, "counters.csv"), read(out, "breakdown.csv")
    with open(os.path.join(out, "rows.csv"), encoding="utf-8") as file:
        lines = file.readlines()
    for torn in "", "attn,attn/host_mma,host,1,8":   # killed before its row was written, and in the middle of a line
        with open(os.path.join(out, "rows.csv"), "w", encoding="utf-8") as file:
            file.writelines(lines[:-1])
        for name in "counters.csv", "breakdown.csv":
            with open(os.path.join(out, name), "a", encoding="utf-8") as file:
                file.write(torn)
        expect_exit(kbench("profile", *TINY, *one, "--resume", out), 0)
        after = read(out, "counters.csv")
        expect(len(after) == len(before) and after[:-1] == before[:-1], f"{len(before)} lines, then {len(after)}")
        expect(sorted(map(key, after)) == sorted(map(key, before)), "a row has two lines, or none")
        again = [(key(part), part["pass"], part["part"], part["name"]) for part in read(out, "breakdown.csv")]
        expect(len(again) == len(set(again)) == len(parts), f"{len(parts)} parts, then {len(again)}")
    expect_exit(kbench("profile", *TINY, *one, "--out", out, "--force"), 0)
    expect(len(read(out, "counters.csv")) == len(before), "lines of an older run are left")
    expect_exit(kbench("sweep", *TINY, *one, "--out", out, "--force"), 0)
    expect(not os.path.exists(os.path.join(out, "breakdown.csv")), "a sweep shows an older profile")


def rings_of_many_sets(folder):
    """Cold, small problems need thousands of sets, and each call of a walk is a record."""
    out = os.path.join(folder, "run")
    done = kbench("profile", *TINY, "-k", "attn/host_mma", "--rounds", "3", "--no-plots", "--out", out)
    for row in read(out, "counters.csv"):   # whether it holds may depend on what else runs here
        expect(int(row["records"]) > 0 and row["missing"] == row["dropped"] == "0", f"{row}", done)


def lost_lines(folder):
    """A row that stands is not measured again: without its profile the run can't be finished, and is not passed off as whole."""
    whole, out = os.path.join(folder, "whole"), os.path.join(folder, "run")
    one = [*SHORT, "--no-plots"]
    expect_exit(kbench("profile", *TINY, *one, "--out", whole), 0)
    n = len(read_rows(whole))
    for name, kept, lost in (("counters.csv", None, n), ("counters.csv", -1, 1), ("breakdown.csv", 1, n), ("samples.csv", None, 0)):
        shutil.copytree(whole, out)
        with open(os.path.join(out, name), encoding="utf-8") as file:
            lines = file.readlines()
        os.remove(os.path.join(out, name))
        if kept:
            with open(os.path.join(out, name), "w", encoding="utf-8") as file:
                file.writelines(lines[:kept])
        done = kbench("profile", "--resume", out, "--no-plots")
        expect_exit(done, 2 if lost else 0)
        expect(not lost or f"{lost} of its {n} rows have no profile" in done.stderr, "not said what is missing", done)
        expect(len(read_rows(out)) == n, "rows were lost", done)
        shutil.rmtree(out)
    expect_exit(kbench("sweep", *TINY, *one, "--out", out), 0)
    expect_exit(kbench("profile", "--resume", out, "--no-plots"), 2)          # a sweep's rows never had one


def failed_stays_failed(folder):
    """A breakdown that does not hold is exit 1 and said, also once nothing is left to measure."""
    out = os.path.join(folder, "run")
    expect_exit(kbench("profile", *TINY, *SHORT, "--no-plots", "--out", out), 0)
    replace(os.path.join(out, "counters.csv"), ",ok,", ",5 of 21 launches have records that are missing or impossible,")
    done = kbench("profile", "--resume", out, "--no-plots")
    expect_exit(done, 1)
    expect("1 of the breakdowns does not hold" in done.stderr and "counters.csv" in done.stderr, "not said", done)


def interrupted_under_the_tracer(folder):
    """Rows are sent before they are traced: what has no profile yet is measured by --resume."""
    words = ["profile", "--device", "host", "-k", "attn/host_mma,attn/host_splitk", "-a", "batch=8", "-a", "ctx=2K",
             "--rounds", "3", "--reference-s", "0", "--no-plots"]
    cut = 0
    for turn in range(2):
        out = os.path.join(folder, f"run{turn}")
        process = start(*words, "--out", out)
        deadline = time.time() + 60
        while not os.path.exists(os.path.join(out, "rows.csv")) and time.time() < deadline:
            time.sleep(0.01)
        time.sleep(0.5 * (turn + 1))
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
        expect(process.returncode in (0, 130), f"exit {process.returncode}\n{stdout}{stderr}")
        timed = {row["kernel"] for row in read_rows(out) if row["t_med_ns"]}
        profiled = {line["kernel"] for line in read(out, "counters.csv")}
        expect(timed == profiled, f"rows without a profile, or the other way round: {timed} {profiled}")
        cut += process.returncode == 130
        if process.returncode == 0:
            break
    expect(cut, "the run was over before it could be interrupted")
    done = kbench("profile", "--resume", os.path.join(folder, "run0"))
    expect_exit(done, 0)
    expect(len(read(os.path.join(folder, "run0"), "counters.csv")) == 2, "not finished", done)


def tree_of(words):
    return [line for line in words.splitlines() if re.match(r"    \S.* [0-9]+x .* %", line)
            or re.match(r"    (gaps|overlap) ", line)]


def report_has_the_trees(folder):
    """Where each row's time went is shown again, from breakdown.csv, in both forms; and not without it."""
    out = os.path.join(folder, "run")
    done = kbench("profile", *TINY, *SHORT, "--no-plots", "--out", out)
    expect_exit(done, 0)
    trees, rows = tree_of(done.stdout), read_rows(out)
    expect(len(trees) == 2 * len(rows), f"{trees}", done)
    for words in [], ["--markdown"]:
        again = kbench("report", out, *words)
        expect_exit(again, 0)
        expect(tree_of(again.stdout) == trees and again.stdout.count("traced: ") == len(rows), f"{trees}", again)
        expect(again.stdout.count("```\n") == (2 * len(rows) if words else 0), "fences", again)
    path = os.path.join(out, "breakdown.csv")
    with open(path, "a", encoding="utf-8") as file:
        file.write("torn")
    again = kbench("report", out)
    expect_exit(again, 2)
    expect("cut short within this line" in again.stderr and not tree_of(again.stdout) and "speed-up" in again.stdout, "", again)
    os.unlink(path)
    again = kbench("report", out)
    expect_exit(again, 0)
    expect(not tree_of(again.stdout), "a tree of nothing", again)


def profiles_of(words):
    """What is said of each profiled row: the paragraphs, or the fences, that say how it was traced."""
    return [part.strip("`\n") for part in re.split(r"\n```\n|\n\n", words) if "\n    traced: " in part]


def report_says_it_again(folder):
    """All that a profile says of a row, trace and counters, its report says in the same lines; and of counters.csv alone."""
    out = os.path.join(folder, "run")
    done = kbench("profile", *TINY, *SHORT, "--no-plots", "--out", out)
    expect_exit(done, 0)
    said, counters = profiles_of(done.stdout), read(out, "counters.csv")
    expect(len(said) == len(counters) and all("of untraced" in words and "; eager" in words for words in said), f"{said}", done)
    counted = sum(" instructions a cycle" in " ".join(words.split()) for words in said)
    expect(counted + sum("    no counters: " in words for words in said) == len(said), "counters, or why not", done)
    for words in [], ["--markdown"]:
        again = kbench("report", out, *words)
        expect_exit(again, 0)
        expect(profiles_of(again.stdout) == said, "\n".join(said), again)
    os.unlink(os.path.join(out, "breakdown.csv"))
    again = kbench("report", out)
    expect_exit(again, 0)
    bare = ["\n".join(line for line in words.splitlines() if not tree_of(line)) for words in said]
    expect(profiles_of(again.stdout) == bare, "\n".join(bare), again)


def three_digits(ratio):
    return f"{ratio:.{2 if ratio < 9.995 else 1 if ratio < 99.95 else 0}f}"


def factors_are_read_back(_):
    """Of profiles that a GPU left: each row's re-read factors, occupancy, and what is used of the ceilings."""
    folders = glob.glob(os.path.join(SOURCE, "results", "h200", "profile-*"))
    expect(folders, "no profile of a GPU")
    for run in folders:
        lines = read(run, "counters.csv")
        for words in [], ["--markdown"]:
            done = kbench("report", run, *words)
            expect_exit(done, 0)
            said = profiles_of(done.stdout)
            expect(len(said) == len(lines), f"{len(said)} profiles of {len(lines)}", done)
            for part, line in zip(said, lines):
                part = " ".join(part.split())
                for name, form in (("l2_reread", "L2 to SMs {}x"), ("dram_reread", "DRAM reads {}x of what must be read"),
                                   ("trace_ratio", "{}x of untraced"), ("occupancy_pct", "occupancy {} %"),
                                   ("sm_busy_pct", "SMs busy {} %"), ("pct_read_ceiling", "DRAM at {} % of the read ceiling"),
                                   ("records", "{} records")):
                    figure = line[name] if name == "records" else line[name] and three_digits(float(line[name]))
                    expect(not figure or form.format(figure) in part, f"{run} {line['kernel']}: no {name} {figure}", done)
            expect(words or all(len(line) <= 80 for line in done.stdout.splitlines()), "columns", done)


def without_trees(out, *kernels):
    """Takes the parts of some rows from breakdown.csv, as where they don't hold."""
    path = os.path.join(out, "breakdown.csv")
    with open(path, encoding="utf-8") as file:
        lines = file.readlines()
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(line for line in lines if line.split(",")[1] not in kernels)


def report_says_why_not(folder):
    """Where a row has no tree the report says what the profile said in its place."""
    out, why = os.path.join(folder, "run"), "5 of 21 launches have records that are missing or impossible: 2 missing, 3 reversed"
    expect_exit(kbench("profile", *TINY, *SHORT, "--no-plots", "--out", out), 0)
    lines, path = read(out, "counters.csv"), os.path.join(out, "counters.csv")
    one, other = sorted({line["kernel"] for line in lines})[:2]
    with open(path, newline="", encoding="utf-8") as file:
        table = list(csv.reader(file, strict=True))
    kernel, breakdown, told = (table[0].index(name) for name in ("kernel", "breakdown", "why"))
    for line in table[1:]:
        if line[kernel] == one:
            line[breakdown] = why
        if line[kernel] == other:
            line[breakdown], line[told] = "", "no permission to trace\033[7m\n```\nhere"
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(table)
    n, dark = sum(line["kernel"] == one for line in lines), sum(line["kernel"] in (one, other) for line in lines)
    for turn in range(2):                        # a tree that counters.csv does not believe is not shown either
        without_trees(out, *((one, other) if turn else (other,)))
        for words in [], ["--markdown"]:
            again = kbench("report", out, *words)
            expect_exit(again, 0)
            said = " ".join(again.stdout.split())
            expect(said.count(f"the breakdown does not hold: {why}") == n, "not said why", again)
            expect(said.count("no trace: no permission to trace?[7m ``` here") == dark - n, "not said why", again)
            expect(len(tree_of(again.stdout)) == 2 * (len(lines) - dark), "trees", again)
            expect(again.stdout.count("traced: ") == len(lines) - dark + n, "what became of the records", again)
            expect(again.stdout.count("\n```\n") == (2 * len(lines) if words else 0), "fences", again)
            expect(words or all(len(line) <= 80 for line in again.stdout.splitlines()), "columns", again)


def counters_are_not_believed_blindly(folder):
    out, whole = os.path.join(folder, "run"), os.path.join(folder, "whole")
    expect_exit(kbench("profile", *TINY, *SHORT, "--no-plots", "--out", whole), 0)
    lines = read(whole, "counters.csv")
    t = lines[0]["t_med_ns"]
    for change, said in (((",breakdown,", ",nothing,"), ":1: 'breakdown': no such column"),
                         ((",why\n", ",no\n"), ":1: 'why': no such column"), ((f",{t},", ",nan,"), ":2: 'nan': not a number"),
                         (("\n", "\nattn,"), ":2: another number of cells")):
        shutil.copytree(whole, out)
        replace(os.path.join(out, "counters.csv"), *change)
        done = kbench("report", out)
        expect_exit(done, 2)
        expect("counters.csv" + said in done.stderr, f"not said: {said}", done)
        expect(len(tree_of(done.stdout)) == 2 * len(lines), "trees that hold are not shown", done)
        shutil.rmtree(out)
    shutil.copytree(whole, out)
    with open(os.path.join(out, "counters.csv"), "a", encoding="utf-8") as file:
        file.write("torn")
    done = kbench("report", out)
    expect_exit(done, 2)
    expect(f"counters.csv:{len(lines) + 2}: cut short within this line" in done.stderr, "not said", done)
    os.unlink(os.path.join(out, "counters.csv"))
    done = kbench("report", out)
    expect_exit(done, 0)
    expect("counters.csv: can't be read" in done.stderr and "no tree, is not known" in done.stderr, "not said", done)
    os.unlink(os.path.join(out, "breakdown.csv"))
    done = kbench("report", out)
    expect_exit(done, 0)
    expect("counters.csv" not in done.stderr, "of a sweep", done)


def cut_short_is_told(folder):
    out = os.path.join(folder, "run")
    expect_exit(kbench("profile", *TINY, *SHORT, "--no-plots", "--out", out), 0)
    path = os.path.join(out, "breakdown.csv")
    with open(path, encoding="utf-8") as file:
        words = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(words[:-9])
    if not shutil.which("gnuplot"):
        raise Skip("no gnuplot")
    done = kbench("plot", out)
    expect_exit(done, 2)
    expect(f"breakdown.csv:{words.count(chr(10))}: cut short within this line" in done.stderr, "where is not said", done)
    expect(os.path.exists(os.path.join(out, "plots", "roofline.svg")), "what is whole is not drawn", done)


def headers_are_explained(folder):
    """Each column of each file that a run leaves is one that `list columns` tells of, in that order, and the other way round."""
    out = os.path.join(folder, "run")
    expect_exit(kbench("profile", *TINY, *SHORT, "--no-plots", "--out", out), 0)
    expect_exit(kbench("precision", "-a", "batch=1", "-a", "ctx=4K", "-a", "k=64", "--out", os.path.join(folder, "precision")), 0)
    files = glob.glob(os.path.join(folder, "*", "*.csv"))
    expect(len(files) == 7, f"{files}")
    dims = read_rows(out)[0].keys()
    dims = list(dims)[list(dims).index("marks") + 1:list(dims).index("tune")]
    expect("ctx" in dims and len(dims) > 3, f"{dims}")
    for path in files:
        done = kbench("list", "columns", path, "--json")
        expect_exit(done, 0)
        told = []
        for column in json.loads(done.stdout)["columns"]:
            told += dims if column["name"] == "<dimensions>" else [column["name"]]
            expect(len(column["help"]) > 3, f"{column}")
        with open(path, newline="", encoding="utf-8") as file:
            lines = list(csv.reader(file, strict=True))
        expect(lines[0] == told, f"{path}: {lines[0]}\nis not\n{told}")
        expect(all(len(line) == len(told) for line in lines), f"{path}: a line of another length")
    expect_exit(kbench("list", "columns", "other.csv"), 2)


main(adds_up, goes_on_and_begins_anew, rings_of_many_sets, lost_lines, failed_stays_failed, interrupted_under_the_tracer,
     report_has_the_trees, report_says_it_again, factors_are_read_back, report_says_why_not,
     counters_are_not_believed_blindly, cut_short_is_told, headers_are_explained)
