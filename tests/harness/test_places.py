#!/usr/bin/env python3
"""Places that can't be written, full disks, and gnuplots that are missing, old or broken: clear words, measured rows kept."""
import os

from common import PROGRAM, QUICK, SHAPE, TINY, environment, expect, expect_exit, in_own_mounts, kbench, main, read_rows


def not_writable(folder):
    blocked = os.path.join(folder, "file")
    with open(blocked, "w", encoding="utf-8"):
        pass
    for out in (blocked, os.path.join(blocked, "run"), "/proc/kbench-run"):
        done = kbench("sweep", *TINY, *QUICK, "--out", out)
        expect_exit(done, 5)
        expect(out in done.stderr and "--out" in done.stderr, "not said where, or what to do", done)


def read_only(folder):
    done = in_own_mounts('mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"', folder,
                         PROGRAM, "sweep", *TINY, *QUICK, "--out", os.path.join(folder, "run"))
    expect_exit(done, 5)
    expect("run" in done.stderr and "--out" in done.stderr, "not said where, or what to do", done)


def disk_full(folder):
    """A disk that fills up in the middle: exit 5, and the rows that fitted are whole."""
    disk = os.path.join(folder, "disk")
    kept = os.path.join(folder, "kept")
    os.makedirs(disk)
    script = ('mount -t tmpfs -o size=24k none "$1" && kept=$2 && disk=$1 && shift 2 && '
              '{ "$@"; code=$?; cp -r "$disk/run" "$kept"; exit $code; }')
    done = in_own_mounts(script, disk, kept, PROGRAM, "sweep", *SHAPE, "-a", "batch=1", "-a", "topk=1:64:+1",
                         "-k", "attn/host_mma", *QUICK, "--out", os.path.join(disk, "run"))
    expect_exit(done, 5)
    expect("No space left" in done.stderr, "not said that the disk is full", done)
    rows = read_rows(kept)
    expect(rows and all(row["status"] == "ok" for row in rows), "no measured rows were kept", done)


def gnuplot(folder, script):
    """A folder that stands on PATH with a gnuplot of ours, or none."""
    bin_folder = os.path.join(folder, "bin")
    os.makedirs(bin_folder)
    if script:
        path = os.path.join(bin_folder, "gnuplot")
        with open(path, "w", encoding="utf-8") as file:
            file.write(script)
        os.chmod(path, 0o755)
    return environment(PATH=bin_folder)


def draws_nothing(folder, script, *words):
    out = os.path.join(folder, "run")
    done = kbench("sweep", *TINY, "--rounds", "4", "--cache", "hot", "--out", out, env=gnuplot(folder, script))
    expect_exit(done, 0)
    expect(all(row["status"] == "ok" for row in read_rows(out)), "rows were lost", done)
    for word in words:
        expect(word in done.stdout + done.stderr, f"no word of '{word}'", done)


def gnuplot_missing(folder):
    draws_nothing(folder, None, "gnuplot")


def stub(version, then):
    return f'#!/bin/sh\n[ "$1" = --version ] && echo "gnuplot {version} patchlevel 4" && exit 0\n{then}\n'


def gnuplot_old(folder):
    draws_nothing(folder, stub("4.2", "exit 1"), "gnuplot 4.2")


def gnuplot_failing(folder):
    draws_nothing(folder, stub("5.4", "echo no terminal >&2; exit 1"), "gnuplot")


def gnuplot_hanging(folder):
    draws_nothing(folder, stub("5.4", "exec /bin/sleep 1000"), "gnuplot")


main(not_writable, read_only, disk_full, gnuplot_missing, gnuplot_old, gnuplot_failing, gnuplot_hanging)
