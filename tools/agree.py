#!/usr/bin/env python3
"""How far the medians of two runs of one sweep agree: the repeatability of a device, row by row.

usage: agree.py RUN_A RUN_B       folders with rows.csv. Exit 0: at least 95 % of the rows of 20 us or more agree within 2 %, and
                                  at least 95 % of the shorter ones within 5 %. 1: they don't. 2: nothing to compare.
"""
import csv
import os
import sys

IDENTITY_ENDS_AT = "timer"   # columns before it say which row it is, but for these
RESULTS = {"status", "marks"}


def rows(folder):
    with open(os.path.join(folder, "rows.csv"), newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        names = reader.fieldnames[: reader.fieldnames.index(IDENTITY_ENDS_AT)]
        return {tuple((n, r[n]) for n in names if n not in RESULTS and r[n]): r for r in reader if r["t_med_ns"]}


def main():
    a, b = rows(sys.argv[1]), rows(sys.argv[2])
    ratios = {key: float(b[key]["t_med_ns"]) / float(a[key]["t_med_ns"]) for key in a if key in b}
    if not ratios:
        print("no row was timed in both runs")
        return 2
    good = True
    for words, bound, chosen in (
        ("rows of 20 us or more", 0.02, [k for k in ratios if float(a[k]["t_med_ns"]) >= 20e3]),
        ("rows below 20 us", 0.05, [k for k in ratios if float(a[k]["t_med_ns"]) < 20e3]),
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
