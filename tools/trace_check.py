#!/usr/bin/env python3
"""Does the trace of a profile cover the time that it explains?

usage: trace_check.py RUN...        folders with a counters.csv of `kbench profile`, or such files
Of each CUDA row: the span of a call by the tracer's records against the same replays without a tracer. It holds within 3 % where
the call takes 20 us or more, and below that within 0.3 us for each kernel of the call. Beside it, the span against the row's own
median, which the timer measured earlier in the run. Exit 1 where a row is outside or has no breakdown, 2 where a file can't be
read.
"""
import csv
import os
import sys

LONG_NS, SHARE, A_KERNEL_NS = 20e3, 0.03, 300


def read(path):
    path = os.path.join(path, "counters.csv") if os.path.isdir(path) else path
    try:
        with open(path, newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file, strict=True))
        float(lines[0]["t_med_ns"])
        return [line for line in lines if line["engine"] == "cuda"]
    except (OSError, csv.Error, KeyError, IndexError, TypeError, ValueError) as why:
        print(f"{path}: not a profile's counters.csv: {why!r}", file=sys.stderr)
        sys.exit(2)


def problem(line):
    """Its dimensions."""
    names = list(line)
    dims = names[names.index("engine") + 1:names.index("tune")]
    return ",".join(f"{dim}={line[dim]}" for dim in dims if line[dim])


def verdict(line):
    """Words, and whether the row holds."""
    if line["breakdown"] != "ok":
        return line["breakdown"] or "not traced", False
    traced, untraced, kernels = (float(line[name]) for name in ("traced_ns", "untraced_ns", "kernels_per_call"))
    off = abs(traced - untraced)
    if untraced >= LONG_NS:
        return f"{100 * (traced / untraced - 1):+.1f} %", off <= SHARE * untraced
    return f"{(traced - untraced) / kernels:+.0f} ns a kernel", off <= A_KERNEL_NS * kernels


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    outside = rows = 0
    for path in sys.argv[1:]:
        for line in read(path):
            words, holds = verdict(line)
            median = ""
            if line["traced_ns"] and line["t_med_ns"]:
                median = f"; {100 * (float(line['traced_ns']) / float(line['t_med_ns']) - 1):+.1f} % of the median"
            untraced = f"{float(line['untraced_ns']) / 1e3:.2f} us" if line["untraced_ns"] else "-"
            print(f"{'holds  ' if holds else 'OUTSIDE'} {line['kernel']:24} {problem(line)}: {untraced}, traced {words}{median}")
            rows += 1
            outside += not holds
    print(f"{outside} of {rows} rows outside of 3 % (20 us and more), 0.3 us a kernel (below)")
    sys.exit(1 if outside else 0)


main()
