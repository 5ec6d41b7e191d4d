#!/usr/bin/env python3
"""Does the trace of a profile cover the time that it explains?

usage: trace_check.py RUN...        folders of `kbench profile`, or a counters.csv of one
Of each CUDA row: the span of a call by the tracer's records against the same replays without a tracer. It holds within 3 % where
the call takes 20 us or more, and below that within 0.3 us for each kernel of the call. Beside it, the span against the row's own
median, which the timer measured earlier in the run. A row of the rows.csv beside it that failed, or that has no counters, is
missing: it counts as outside. Exit 1 where a row is outside or has no breakdown, 2 where a file can't be read, is cut short or
holds no CUDA row.
"""
import csv
import io
import math
import os
import sys

LONG_NS, SHARE, A_KERNEL_NS = 20e3, 0.03, 300


def lines_of(path):
    """Of a CSV file that is whole, its names and lines."""
    with open(path, newline="", encoding="utf-8") as file:
        text = file.read()
    if not text.endswith("\n"):
        raise ValueError("its last line is cut short")
    names, *cells = csv.reader(io.StringIO(text, newline=""), strict=True)
    for number, line in enumerate(cells, 2):
        if len(line) != len(names):
            raise ValueError(f"line {number} has {len(line)} cells, not {len(names)}")
    return names, [dict(zip(names, line)) for line in cells]


def number_in(line, name):
    value = float(line[name] or "nan")
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{line['kernel']}: {name} is '{line[name]}'")
    return value


def checked(line):
    """Its numbers: of a row with a breakdown all, else those that are there."""
    for name in ("t_med_ns", "traced_ns", "untraced_ns", "kernels_per_call"):
        if line[name] or line["breakdown"] == "ok":
            line[name] = number_in(line, name)
    return line


def missing(path, key, traced):
    """Rows of a run that should have counters: those that failed, and those that have none; each with the reason."""
    seen = {tuple(line[name] for name in key) for line in traced}
    rows = {}
    for row in lines_of(path)[1]:
        if row["engine"] == "cuda" and row["status"] != "unsupported":
            rows.setdefault(tuple(row[name] for name in key), []).append(row)
    for identity, same in rows.items():   # a row may have been measured again
        bad = [row["status"] for row in same if row["status"] != "ok"]
        if bad or identity not in seen:
            yield same[0], f"{bad[0]} in rows.csv" if bad else "not in counters.csv"


def read(path):
    """CUDA rows of counters, names of their dimensions, and the run's rows that lack such."""
    path = os.path.join(path, "counters.csv") if os.path.isdir(path) else path
    try:
        names, lines = lines_of(path)
        dims = names[names.index("engine") + 1:names.index("tune")]
        traced = [checked(line) for line in lines if line["engine"] == "cuda"]
        if not traced:
            raise ValueError("no CUDA row")
        rows = os.path.join(os.path.dirname(path), "rows.csv")
        return traced, dims, list(missing(rows, ["kernel", *dims, "tune", "cache", "seed"], traced))
    except (OSError, csv.Error, KeyError, ValueError) as why:
        print(f"{path}: not the counters of a whole profile: {why!r}", file=sys.stderr)
        sys.exit(2)


def problem(line, dims):
    """Its dimensions."""
    return ",".join(f"{dim}={line[dim]}" for dim in dims if line[dim])


def verdict(line):
    """Words, and whether the row holds."""
    if line["breakdown"] != "ok":
        return line["breakdown"] or "not traced", False
    traced, untraced, kernels = (line[name] for name in ("traced_ns", "untraced_ns", "kernels_per_call"))
    off = abs(traced - untraced)
    if untraced >= LONG_NS:
        return f"{100 * (traced / untraced - 1):+.1f} %", off <= SHARE * untraced
    return f"{(traced - untraced) / kernels:+.0f} ns a kernel", off <= A_KERNEL_NS * kernels


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    outside = rows = 0
    for traced, dims, lacking in [read(path) for path in sys.argv[1:]]:
        for line in traced:
            words, holds = verdict(line)
            median = ""
            if line["traced_ns"] and line["t_med_ns"]:
                median = f"; {100 * (line['traced_ns'] / line['t_med_ns'] - 1):+.1f} % of the median"
            untraced = f"{line['untraced_ns'] / 1e3:.2f} us" if line["untraced_ns"] else "-"
            print(f"{'holds  ' if holds else 'OUTSIDE'} {line['kernel']:24} {problem(line, dims)}: {untraced}, "
                  f"traced {words}{median}")
            outside += not holds
        for row, why in lacking:
            print(f"missing {row['kernel']:24} {problem(row, dims)}: {why}")
        rows += len(traced) + len(lacking)
        outside += len(lacking)
    print(f"{outside} of {rows} rows outside of 3 % (20 us and more), 0.3 us a kernel (below)")
    sys.exit(1 if outside else 0)


main()
