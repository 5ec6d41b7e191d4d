"""Is other work on a GPU seen, and a quiet GPU left alone?

usage: neighbours.py PROGRAM NEIGHBOUR [--runs N] [--short] [--out DIR] [--device CUDA]
Counts runs with a row marked `contended`: quiet (at most 1 of 20 may be), beside a copy loop at 20 % duty (at least 19 of 20),
beside bursts of 50 ms every 5 s (at least 18 of 20 runs of 15 s). --short: quiet and loop runs of a third of the time. Exit 1 where
a bar is missed, 77 where there is no GPU.
"""
import argparse
import csv
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

CASES = [   # name, words of the neighbour, share of runs that is right to be marked: at least, at most
    ("quiet", None, 0, 0.05),
    ("copy loop at 20 %", ["copy", "20", "100"], 0.95, 1),
    ("bursts of 50 ms every 5 s", ["copy", "50", "5000"], 0.9, 1),
]


def read(folder, name):
    with open(os.path.join(folder, name), newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def numbers(rows, column):
    return sorted(float(row[column]) for row in rows if row[column])


def describe(values):
    if not values:
        return "none"
    return " ".join(f"{values[int(share * (len(values) - 1))] / 1e3:.1f}" for share in (0.25, 0.5, 0.95, 1))


def run(options, folder, batches):
    """One run of mostly timed work: its rows and samples, and how long it took."""
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
    return read(folder, "rows.csv"), read(folder, "samples.csv"), time.monotonic() - began


def neighbour(options, words, seconds):
    process = subprocess.Popen([options.neighbour, *words, str(seconds)], stdout=subprocess.PIPE, text=True)
    if process.stdout.readline() != "ready\n":
        print("the neighbour did not start")
        sys.exit(1)
    return process


def show(name, rows, samples, seconds, hit):
    at = numbers(samples, "at_s")
    gaps = [b - a for a, b in zip(at, at[1:])]
    timed = sum(gap for gap in gaps if gap < 0.02) / seconds
    print(f"  {name}: {len(hit)} of {len(rows)} rows contended, {seconds:.1f} s, {100 * timed:.0f} % of it timed, {len(samples)} "
          f"samples, one every {1e3 * statistics.median(gaps):.2f} ms; at 25, 50, 95, 100 %: canary "
          f"{describe(numbers(samples, 'canary_ns'))} us, waits {describe(numbers(samples, 'wait_ns'))} us", flush=True)
    if hit:
        print(f"    {hit[0]['kernel']}: {hit[0]['reason']}")


def case(options, name, words, least, most):
    marked = 0
    whole = "8,16,24,32,40,48,56,64,72"
    for i in range(options.runs):
        beside = neighbour(options, words, 120) if words else None
        batches = "8,16,24" if options.short and (not words or words[2] == "100") else whole
        try:
            rows, samples, seconds = run(options, os.path.join(options.out, f"{name.replace(' ', '-')}-{i}"), batches)
        finally:
            if beside:
                beside.terminate()
                beside.wait()
        hit = [row for row in rows if "contended" in row["marks"].split(";")]
        marked += bool(hit)
        show(f"{name}, run {i}", rows, samples, seconds, hit)
    low, high = math.floor(least * options.runs), math.ceil(most * options.runs)
    right = low <= marked <= high
    print(f"{'ok' if right else 'MISSED'}: {name}: {marked} of {options.runs} runs marked ({low} to {high} is right)", flush=True)
    return right


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("neighbour")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--out")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    options.out = options.out or tempfile.mkdtemp(prefix="kbench-neighbours-")
    os.makedirs(options.out, exist_ok=True)
    right = [case(options, *one) for one in CASES]
    sys.exit(0 if all(right) else 1)


main()
