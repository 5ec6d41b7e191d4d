#!/usr/bin/env python3
"""How far the medians of two runs of one sweep agree: the repeatability of a device, row by row.

usage: agree.py RUN_A RUN_B       folders with rows.csv. Exit 0: at least 95 % of the rows of 20 us or more agree within 2 %, and
                                  at least 95 % of the shorter ones within 5 %. 1: they don't. 2: nothing to compare, or a
                                  run that can't be read.
"""
import csv
import math
import os
import sys

IDENTITY_ENDS_AT = "timer"   # columns before it say which row it is, but for these
RESULTS = {"status", "marks"}


def refuse(words):
    print(words, file=sys.stderr)
    sys.exit(2)


def timed(row):
    median = float(row["t_med_ns"])
    if not (math.isfinite(median) and median > 0):
        raise ValueError(f"a median of {row['t_med_ns']} ns")
    return median


def rows(folder):
    """Medians in ns by what says which row it is."""
    path = os.path.join(folder, "rows.csv")
    try:
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file, strict=True)
            columns = reader.fieldnames or []
            names = [n for n in columns[: columns.index(IDENTITY_ENDS_AT)] if n not in RESULTS]
            lines = list(reader)
        if any(None in row or None in row.values() for row in lines):
            raise ValueError("a line has fewer or more cells than there are columns")
        return {tuple((n, row[n]) for n in names if row[n]): timed(row) for row in lines if row["t_med_ns"]}
    except (OSError, csv.Error, KeyError, ValueError) as why:
        return refuse(f"{path}: not the rows of a run: {why!r}")


def main():
    if len(sys.argv) != 3:
        refuse("usage: agree.py RUN_A RUN_B")
    a, b = rows(sys.argv[1]), rows(sys.argv[2])
    ratios = {key: b[key] / a[key] for key in a if key in b}
    if not ratios:
        print("no row was timed in both runs")
        return 2
    good = True
    for words, bound, chosen in (
        ("rows of 20 us or more", 0.02, [k for k in ratios if a[k] >= 20e3]),
        ("rows below 20 us", 0.05, [k for k in ratios if a[k] < 20e3]),
    ):
        apart = [k for k in chosen if not abs(ratios[k] - 1) <= bound]
        if not chosen:
            continue
        share = 100 * (1 - len(apart) / len(chosen))
        good = good and share >= 95
        print(f"{words}: {share:.1f} % of {len(chosen)} agree within {100 * bound:.0f} %")
        for key in apart:
            row = dict(key)
            print(f"  {row.pop('kernel')} {ratios[key]:.3f}x  " + ",".join(f"{n}={v}" for n, v in row.items() if v.isdigit()))
    return 0 if good else 1


sys.exit(main())
