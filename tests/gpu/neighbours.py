"""Is other work on a GPU seen, and a quiet GPU left alone?

usage: neighbours.py PROGRAM NEIGHBOUR [--runs N] [--cases quiet,loop,bursts] [--csv FILE] [--short] [--batches LIST]
                     [--out DIR] [--device CUDA]
Counts runs with a row marked `contended`: quiet (at most 1 of 20 may be, none of fewer), beside a copy loop at 20 % duty (at least
19 of 20, one of one), beside bursts of 50 ms every 5 s (at least 18 of 20 runs of 15 s). --short: quiet and loop runs of a third of
the time. Exit 1 where a bar is missed, 2 where something can't be read, written or begun, 77 where there is no GPU.
--csv: a line for each run, written as it ends, with its batch sizes and the program's commit. A file that is there is gone on with:
further runs are added, and the bar is held against all runs of the case in it, so that twenty runs can be made in several calls.
"""
import argparse
import csv
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

CASES = {   # name, words of the neighbour, share of runs that is right to be marked: at least, at most
    "quiet": ("quiet", None, 0, 0.05),
    "loop": ("copy loop at 20 %", ["copy", "20", "100"], 0.95, 1),
    "bursts": ("bursts of 50 ms every 5 s", ["copy", "50", "5000"], 0.9, 1),
}
COLUMNS = ["case", "run", "batches", "code", "seconds", "timed_percent", "rows", "rows_contended", "marked", "samples",
           "canary_p25_ns", "canary_p50_ns", "canary_p95_ns", "canary_max_ns", "wait_p25_ns", "wait_p50_ns", "wait_p95_ns",
           "wait_max_ns", "reason"]
SHARES = (0.25, 0.5, 0.95, 1)


def refuse(words):
    print(f"neighbours.py: {words}", file=sys.stderr)
    sys.exit(2)


def read(folder, name):
    with open(os.path.join(folder, name), newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def numbers(rows, column):
    return sorted(float(row[column]) for row in rows if row[column])


def quantiles(values):
    return [values[int(share * (len(values) - 1))] for share in SHARES] if values else []


def describe(values):
    return " ".join(f"{value / 1e3:.1f}" for value in quantiles(values)) or "none"


def earlier(path):
    """The runs that a file of earlier calls holds."""
    if not path or not os.path.exists(path):
        return []
    with open(path, newline="", encoding="utf-8") as file:
        lines = file.readlines()
    names, *runs = csv.reader(lines, strict=True) if lines else [COLUMNS]
    if names != COLUMNS:
        refuse(f"{path}: other columns than this program writes; name another file")
    if lines and not lines[-1].endswith("\n"):
        refuse(f"{path}: its last line is cut short; mend it or name another file")
    for number, cells in enumerate(runs, 2):
        if len(cells) != len(COLUMNS) or cells[COLUMNS.index("marked")] not in ("0", "1"):
            refuse(f"{path}: line {number} is not a run; mend it or name another file")
    return [dict(zip(COLUMNS, cells)) for cells in runs]


def record(path, line):
    """Adds a run to the file, header first where it is new; whole on the disk before the next run begins."""
    if not path:
        return
    new = not os.path.exists(path) or not os.path.getsize(path)
    with open(path, "a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(line)


def run(options, folder, batches):
    """One run of mostly timed work: its rows and samples, the commit of the program, and how long it took."""
    began = time.monotonic()
    words = [options.program, "sweep", "--device", options.device, "-k", "attn/mma,attn/splitk", "-a", f"batch={batches}", "-a",
             "ctx=32K", "--max-time", "800ms", "--noise", "0.001", "--no-plots", "-q", "--force", "--out", folder]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode == 5:
        print(done.stderr)
        sys.exit(77)
    if done.returncode:
        print(done.stdout[-2000:], done.stderr[-2000:])
        sys.exit(1)
    seconds = time.monotonic() - began
    with open(os.path.join(folder, "env.json"), encoding="utf-8") as file:
        code = json.load(file)["kbench"]
    return read(folder, "rows.csv"), read(folder, "samples.csv"), code, seconds


def neighbour(options, words, seconds):
    process = subprocess.Popen([options.neighbour, *words, str(seconds)], stdout=subprocess.PIPE, text=True)
    if process.stdout.readline() != "ready\n":
        print("the neighbour did not start")
        sys.exit(1)
    return process


def measure(rows, samples, seconds):
    """The line of the CSV file that says how a run went; case and run are still to be named."""
    at = numbers(samples, "at_s")
    timed = sum(gap for gap in (b - a for a, b in zip(at, at[1:])) if gap < 0.02) / seconds
    hit = [row for row in rows if "contended" in row["marks"].split(";")]
    line = {"seconds": f"{seconds:.2f}", "timed_percent": f"{100 * timed:.1f}", "rows": len(rows), "rows_contended": len(hit),
            "marked": int(bool(hit)), "samples": len(samples), "reason": hit[0]["kernel"] + ": " + hit[0]["reason"] if hit else ""}
    for column in ("canary", "wait"):
        names = [f"{column}_{part}_ns" for part in ("p25", "p50", "p95", "max")]
        line.update(zip(names, (f"{value:.0f}" for value in quantiles(numbers(samples, column + "_ns")))))
    return line


def show(line, samples):
    at = numbers(samples, "at_s")
    every = statistics.median(b - a for a, b in zip(at, at[1:])) if len(at) > 1 else math.nan
    print(f"  {line['case']}, run {line['run']}: {line['rows_contended']} of {line['rows']} rows contended, {line['seconds']} s, "
          f"{line['timed_percent']} % of it timed, {len(samples)} samples, one every {1e3 * every:.2f} ms; at 25, 50, 95, 100 %: "
          f"canary {describe(numbers(samples, 'canary_ns'))} us, waits {describe(numbers(samples, 'wait_ns'))} us", flush=True)
    if line["reason"]:
        print(f"    {line['reason']}", flush=True)


def bounds(least, most, runs):
    """How many of so many runs may be marked; where few are made a share still asks for one, or allows none."""
    low, high = (math.floor(share * runs + 1e-9) for share in (least, most))
    return max(low, 1) if least >= 0.9 else low, high


def case(options, name, words, least, most):
    whole = "8,16,24,32,40,48,56,64,72"
    lines = [line for line in earlier(options.csv) if line["case"] == name]
    first = len(lines)
    for i in range(first, first + options.runs):
        beside = neighbour(options, words, 120) if words else None
        third = options.short and (not words or words[2] == "100")
        batches = options.batches or ("8,16,24" if third else whole)
        try:
            rows, samples, code, seconds = run(options, os.path.join(options.out, f"{name.replace(' ', '-')}-{i}"), batches)
        finally:
            if beside:
                beside.terminate()
                beside.wait()
        line = {"case": name, "run": i, "batches": batches, "code": code, **measure(rows, samples, seconds)}
        lines.append(line)
        record(options.csv, line)
        show(line, samples)
    marked = sum(int(line["marked"]) for line in lines)
    low, high = bounds(least, most, len(lines))
    right = low <= marked <= high
    print(f"{'ok' if right else 'MISSED'}: {name}: {marked} of {len(lines)} runs marked ({low} to {high} is right)", flush=True)
    return right


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("neighbour")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--cases", default=",".join(CASES), help="some of " + ",".join(CASES))
    parser.add_argument("--csv")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--batches", help="batch sizes of a run; more make it longer")
    parser.add_argument("--out")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    options.cases = [name for name in options.cases.split(",") if name]
    unknown = [name for name in options.cases if name not in CASES]
    if unknown or not options.cases:
        refuse(f"no case '{','.join(unknown)}': the cases are {', '.join(CASES)}")
    if options.runs < 1:
        refuse(f"--runs {options.runs}: 1 or more")
    if options.batches is not None and not re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", options.batches):
        refuse(f"--batches {options.batches}: sizes as in 8,16,24")
    if options.csv and not os.path.isdir(os.path.dirname(options.csv) or "."):
        refuse(f"--csv {options.csv}: no such folder")
    return options


def main():
    options = arguments()
    try:
        earlier(options.csv)
        options.out = options.out or tempfile.mkdtemp(prefix="kbench-neighbours-")
        os.makedirs(options.out, exist_ok=True)
        right = [case(options, *CASES[name]) for name in options.cases]
    except (OSError, csv.Error, ValueError, KeyError) as why:
        refuse(repr(why) if isinstance(why, KeyError) else why)
    sys.exit(0 if all(right) else 1)


if __name__ == "__main__":
    main()
