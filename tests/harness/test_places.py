#!/usr/bin/env python3
"""Places that can't be written, full disks, and gnuplots that are missing, old or broken: clear words, measured rows kept."""
import os
import re
import resource
import shutil
import subprocess

from common import (PROGRAM, QUICK, SHAPE, SOURCE, TINY, environment, expect, expect_exit, in_own_mounts, kbench, main,
                    read_rows, start)


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


def files_may_not_grow(folder):
    """A file that reaches its limit (ulimit -f) is an error of one write as on a full disk, and not the end of the process."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 10, 4 << 10))

    with open(os.path.join(folder, "list"), "w", encoding="utf-8") as out:
        done = subprocess.run([PROGRAM, "list", "kernels", "--json"], env=environment(), stdout=out, stderr=subprocess.PIPE,
                              text=True, timeout=60, preexec_fn=limit, check=False)
    expect(done.returncode == 5 and "stdout: can't be written whole" in done.stderr, f"{done.returncode}: {done.stderr}")


def stdout_full(folder):
    """Whatever a command has to say: what did not arrive is no success. A reader that left has what it wanted."""
    out = os.path.join(folder, "run")
    expect_exit(kbench("sweep", *TINY, *QUICK, "--out", out), 0)
    for words in (["list"], ["list", "--json"], ["list", "kernels", "--static"], ["list", "kernels", "--static", "--json"],
                  ["list", "results"], ["list", "columns"], ["--help"], ["--version"], ["report", out],
                  ["doctor", "--device", "host"], ["check", *TINY],
                  ["sweep", *TINY, "--dry-run"], ["sweep", "--show-config"], ["sweep", "--resume", out],
                  ["profile", *TINY, *QUICK, "--out", os.path.join(folder, "profile")],
                  ["gate", os.path.join(SOURCE, "gates", "static.ini")]):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([PROGRAM, *words], env=environment(), stdout=full, stderr=subprocess.PIPE, text=True,
                                  timeout=120, stdin=subprocess.DEVNULL, check=False)
        told = "stdout: can't be written whole" in done.stderr
        expect(done.returncode == 5 and told, f"{words}: {done.returncode} {done.stderr}")
    for words in (["list"], ["list", "--json"], ["report", out], ["doctor", "--device", "host"],
                  ["doctor", "--device", "host", "--json"]):
        process = start(*words)
        process.stdout.close()
        stderr = process.stderr.read()
        process.stderr.close()
        good = (0, 4) if words[0] == "doctor" else (0,)   # 4: a wrong timer, on a machine that is busy enough
        expect(process.wait(timeout=60) in good and not stderr, f"{words} | true: {process.returncode} {stderr}")


def files_beside_rows(folder):
    """Of a run whose rows are whole, a file that could not be written is told and is no success."""
    whole = os.path.join(folder, "run")
    expect_exit(kbench("sweep", *TINY, "--rounds", "4", "--cache", "hot", "--no-plots", "--out", whole), 0)
    for name, words in (("scaling.csv", ["--no-plots"]), ("crossover.csv", ["--no-plots"]), ("log.txt", ["--no-plots"]),
                        ("plots", []), (None, ["--no-plots"])):
        out = os.path.join(folder, f"without-{name}")
        shutil.copytree(whole, out)
        if name and os.path.exists(os.path.join(out, name)):
            os.remove(os.path.join(out, name))
        if name == "plots":
            os.symlink("/dev/null", os.path.join(out, name))
        elif name == "log.txt":
            os.symlink("/dev/full", os.path.join(out, name))
        elif name:
            os.makedirs(os.path.join(out, name))                    # nothing can be renamed to it
        done = kbench("sweep", "--resume", out, *words, env=gnuplot(out, stub("5.4", "exit 0")))
        expect_exit(done, 5 if name else 0)
        expect(not name or "could be written whole" in done.stderr, "not said", done)
        expect(name in (None, "log.txt") or f"{name}" in done.stderr, "not said which", done)


def folder_of_any_name(folder):
    """Commands that are printed to be copied name a folder as a shell reads it."""
    out = os.path.join(folder, "o'neill, a run")
    gate = os.path.join(folder, "gate.ini")
    with open(gate, "w", encoding="utf-8") as file:
        file.write("[a]\nkernel = attn/host_mma\nover = attn/host_perhead\nat-least = 0.001\n")
    done = kbench("sweep", *TINY, "-k", "attn/host_mma,attn/host_perhead", *QUICK, "--out", out)
    expect_exit(done, 0)
    rows = os.path.join(out, "rows.csv")
    with open(rows, "rb") as file:
        lines = file.read().splitlines(True)
    with open(rows, "wb") as file:
        file.writelines(lines[:-1])
    asked = kbench("gate", gate, out)
    expect_exit(asked, 4)
    for command, page in (("sweep", asked.stdout), ("report", done.stdout), ("plot", done.stdout)):
        line = re.search(rf"\./(kbench {command} (?:\\\n|.)*)", page).group(1)
        line = line.removesuffix("  draws the plots again").removesuffix("  for a pull request")
        again = subprocess.run(["sh", "-c", line], env=environment(PATH=os.path.dirname(PROGRAM) + ":" + os.environ["PATH"]),
                               capture_output=True, text=True, timeout=60, check=False)
        expect_exit(again, 0)


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


main(not_writable, read_only, disk_full, files_may_not_grow, stdout_full, files_beside_rows, folder_of_any_name, gnuplot_missing,
     gnuplot_old, gnuplot_failing, gnuplot_hanging)
