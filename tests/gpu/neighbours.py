"""Is other work on a GPU seen, and a quiet GPU left alone?

usage: neighbours.py PROGRAM NEIGHBOUR [--runs N] [--part I/N] [--cases quiet,loop,bursts] [--csv FILE] [--short] [--batches LIST]
                     [--out DIR] [--device CUDA]
Counts runs with a row marked `contended`: quiet (at most 1 of 20 may be, none of fewer), beside a copy loop at 20 % duty (at least
19 of 20, one of one), beside bursts of 50 ms every 5 s (at least 18 of 20). A row is measured for about half a second, once
where it is not marked and three times where it is, so the number of batch sizes decides how long a run is: as many as make 15 s of
measuring, which are fewer beside the loop. --short: quiet and loop runs of a third of that. Runs that measured less than 15 s are
told. Exit 1 where a bar is missed, 2 where something can't be read, written or begun, 77 where there is no GPU.
--csv: a line for each run, written as it ends, with its batch sizes and the program's commit. A file that is there is gone on with:
further runs are added, and the bar is held against all runs of the case in it, so that twenty runs can be made in several calls.
--part I/N: of the runs 0 to --runs - 1 those whose number leaves I when divided by N, and that the file lacks; a process for each
part and GPU (--device cuda:I) may write to the same file at the same time.
"""
import argparse
import csv
import fcntl
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

BATCHES = [str(batch) for batch in range(8, 104, 8)]   # three rows each
CASES = {   # name, words of the neighbour, share of runs that is right to be marked: at least, at most; batch sizes, and in short
    "quiet": ("quiet", None, 0, 0.05, BATCHES, BATCHES[:3]),
    "loop": ("copy loop at 20 %", ["copy", "20", "100"], 0.95, 1, BATCHES[:4], BATCHES[:1]),
    "bursts": ("bursts of 50 ms every 5 s", ["copy", "50", "5000"], 0.9, 1, BATCHES, BATCHES),
}
MEASURED_S = 15
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
        fcntl.flock(file, fcntl.LOCK_SH)
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
    with open(path, "a", newline="", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)   # another part's process may write, too
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if not os.path.getsize(path):
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


def device_environment(device):
    """What makes the neighbour's first GPU the one that is measured."""
    one = device.partition(":")[2] or (device if device.upper().startswith("GPU-") else "")
    seen = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    if one.isdigit() and seen != [""]:
        one = seen[int(one)] if int(one) < len(seen) else refuse(f"--device {device}: CUDA_VISIBLE_DEVICES has no such GPU")
    return {**os.environ, **({"CUDA_VISIBLE_DEVICES": one} if one else {})}


def neighbour(options, words, seconds):
    process = subprocess.Popen([options.neighbour, *words, str(seconds)], stdout=subprocess.PIPE, text=True,
                               env=device_environment(options.device))
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


def numbers_to_run(options, lines):
    """Of a case's runs, those that this process makes: a part of --runs, or as many more."""
    there = {int(line["run"]) for line in lines}
    if not options.part:
        first = max(there, default=-1) + 1
        return range(first, first + options.runs)
    which, parts = options.part
    return [i for i in range(options.runs) if i % parts == which and i not in there]


def case(options, name, words, least, most, whole, short):
    lines = [line for line in earlier(options.csv) if line["case"] == name]
    for i in numbers_to_run(options, lines):
        beside = neighbour(options, words, 240) if words else None
        batches = options.batches or ",".join(short if options.short else whole)
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
    lines = [line for line in earlier(options.csv) if line["case"] == name] if options.csv else lines
    few = sum(float(line["seconds"]) * float(line["timed_percent"]) / 100 < MEASURED_S for line in lines)
    if few:
        print(f"{name}: {few} of {len(lines)} runs measured for less than {MEASURED_S} s")
    marked = sum(int(line["marked"]) for line in lines)
    low, high = bounds(least, most, len(lines))
    right = low <= marked <= high
    so_far = "so far " if len(lines) < options.runs else ""
    print(f"{'ok' if right else 'MISSED'}: {name}: {so_far}{marked} of {len(lines)} runs marked ({low} to {high} is right)",
          flush=True)
    return right


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("neighbour")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--part", help="I/N: every N-th of them, from the I-th on")
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
    part = re.fullmatch(r"(\d+)/([1-9]\d*)", "0/1" if options.part is None else options.part)
    if not part or int(part.group(1)) >= int(part.group(2)):
        refuse(f"--part {options.part}: as in 0/2 and 1/2")
    options.part = options.part and (int(part.group(1)), int(part.group(2)))
    if options.batches is not None and not re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", options.batches):
        refuse(f"--batches {options.batches}: sizes as in 8,16,24")
    for program in (options.program, options.neighbour):   # now, not when twenty quiet runs are over
        if not shutil.which(program):
            refuse(f"{program}: no such program")
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
