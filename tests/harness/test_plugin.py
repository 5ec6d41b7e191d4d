#!/usr/bin/env python3
"""Evidence from plug-ins: the file's hash is on record, so that a changed plug-in's rows are told stale, and are not added to.

usage: test_plugin.py PROGRAM SOURCE_ROOT FOLDER [TEST...]      FOLDER holds the planted plug-ins
"""
import csv
import fcntl
import glob
import json
import os
import re
import shutil
import subprocess
import sys

PLANTED = os.path.abspath(sys.argv.pop(3))

from common import PROGRAM, QUICK, SMALL, environment, expect, expect_exit, kbench, main, read_rows  # noqa: E402


def plug_in(folder, name):
    """The same kernel's name in whatever state its author has left it."""
    path = os.path.join(folder, "mine.so")
    shutil.copyfile(os.path.join(PLANTED, name + ".so"), path + ".new")
    os.rename(path + ".new", path)
    return ["--plugin", path]


def recorded(run):
    with open(os.path.join(run, "env.json"), encoding="utf-8") as file:
        return json.load(file)["kernels"]


def listed(folder, *words):
    """Evidence and names of other code of the one run below the folder, and what people read of it."""
    env = environment(KBENCH_ROOT=folder)
    done = kbench("list", "results", "--json", *words, env=env)
    expect_exit(done, 0)
    result, = json.loads(done.stdout)["results"]
    return result["evidence"], result["other_code"], kbench("list", "results", *words, env=env).stdout


def changed_code_is_stale(folder):
    run = os.path.join(folder, "results", "one")
    mine = plug_in(folder, "right")
    expect_exit(kbench("sweep", *mine, "-k", "plugin/*", *SMALL, *QUICK, "--out", run), 0)
    hashes = recorded(run)
    expect(list(hashes) == ["plugin/mine"] and re.fullmatch(r"so:[0-9a-f]{16}", hashes["plugin/mine"]), f"on record: {hashes}")
    evidence, other, page = listed(folder, *mine)
    expect(evidence == "fresh" and not other and "plug-in" not in page, f"the same file: {evidence} {other}\n{page}")
    evidence, other, page = listed(folder)
    expect(evidence == "unknown" and not other and "--plugin has to name" in " ".join(page.split()),
           f"not there: {evidence}\n{page}")
    evidence, other, page = listed(folder, *plug_in(folder, "slow"))
    expect(evidence == "stale" and other == ["plugin/mine"] and "other machine code of plugin/mine" in " ".join(page.split()),
           f"another file: {evidence} {other}\n{page}")


def has_a_name(folder):
    """A plug-in has none of its own: that of its file stands in the breakdown, as in the rows."""
    run = os.path.join(folder, "run")
    done = kbench("profile", *plug_in(folder, "right"), "-k", "plugin/*", *SMALL, *QUICK, "--out", run)
    expect_exit(done, 0)
    with open(os.path.join(run, "breakdown.csv"), newline="", encoding="utf-8") as file:
        names = [line["name"] for line in csv.DictReader(file) if line["part"] == "kernel"]
    expect(names and set(names) == {"plugin/mine"} and "    plugin/mine   " in done.stdout, f"{names}", done)


def traced_processes_time_nothing(folder):
    """A tracer leaves longer calls behind: each group of a profile is timed in a process of its own, a sweep's in one."""
    for command, processes in (("sweep", 1), ("profile", 2)):
        done = kbench(command, *plug_in(folder, "says_pid"), "-k", "plugin/*", *SMALL, "-a", "batch=1,2", *QUICK, "--out",
                      os.path.join(folder, command))
        expect_exit(done, 0)
        seen = re.findall(r"^process (\d+)$", done.stderr, re.MULTILINE)
        expect(len(seen) == len(set(seen)) == processes, f"{command}: processes {seen}", done)


SLOWLY = {"DIES_LATE_MS": "60"}   # so that what is counted by time, as the warm-up, is few launches


def launches_of_a_profile(words, folder):
    """How often the planted kernel ran in the worker that profiled it."""
    says = os.path.join(folder, "says")
    expect_exit(kbench(*words, os.path.join(folder, "whole"), env=environment(DIES_LATE_SAYS=says, **SLOWLY)), 0)
    counts = []
    for path in glob.glob(says + ".*"):
        with open(path, encoding="utf-8") as file:
            counts.append(int(file.read()))
    return max(counts)


def death_under_the_tracer_costs_a_trace(folder):
    """A row that is timed keeps its time, and says why it has no breakdown; nothing else of the run is lost. On a busy machine a
    profile tries some things again, and the launch that was to be a traced one is none: then it is tried once more."""
    words = ["profile", *plug_in(folder, "dies_late"), "-k", "plugin/*,attn/host_perhead", *SMALL, "-a", "batch=1", *QUICK, "--out"]
    for name, how, why in (("dies", {}, r"the worker was killed by signal 6 .* in: traced replays"),
                           ("hangs", {"DIES_LATE_HANGS": "1"}, r"traced replays took longer than 2 s; .*")):
        for attempt in range(6):
            place = os.path.join(folder, f"{name}{attempt}")
            os.mkdir(place)
            late = str(launches_of_a_profile(words, place) - 5)   # five are traced; two or three come behind them
            run = os.path.join(place, "run")
            done = kbench(*words, run, "--timeout", "2", env=environment(DIES_LATE_AT=late, **SLOWLY, **how))
            if "traced replays" in done.stdout + done.stderr:
                break
        expect_exit(done, 1)
        expect([row["status"] for row in read_rows(run)] == ["ok"] * 2, "a row is lost", done)
        with open(os.path.join(run, "counters.csv"), newline="", encoding="utf-8") as file:
            found = {line["kernel"]: line["breakdown"] for line in csv.DictReader(file)}
        expect(re.fullmatch(why, found.pop("plugin/mine")), f"{found}", done)
        expect(list(found) == ["attn/host_perhead"] and "traced replays" not in found["attn/host_perhead"], f"{found}", done)


def who_hangs_is_blamed(folder):
    """Of two, the first is wrong and not timed; the other hangs as the only one that is, behind more launches than a check has."""
    plugins = [word for name in ("baked_length", "dies_late") for word in ("--plugin", os.path.join(PLANTED, name + ".so"))]
    done = kbench("sweep", *plugins, "-k", "plugin/*", *SMALL, "-a", "batch=1", "--rounds", "100", "--no-plots", "--timeout", "2",
                  "--out", os.path.join(folder, "run"), env=environment(DIES_LATE_AT="61", DIES_LATE_HANGS="1"))
    expect_exit(done, 1)
    found = {row["kernel"]: row["status"] for row in read_rows(os.path.join(folder, "run"), every=True)}
    expect(found == {"plugin/baked_length": "nan", "plugin/dies_late": "timeout"}, f"{found}", done)


def at_a_held_device(*words):
    """As while another run is on the host device, whose lock file this is."""
    place = "/run/lock" if os.access("/run/lock", os.W_OK) else "/tmp"
    with open(os.path.join(place, "kbench-host.lock"), "a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass   # another run is indeed
        return kbench(*words, env=environment(KBENCH_NO_LOCK=None), timeout=30)


def a_run_is_of_one_code(folder):
    run = os.path.join(folder, "run")
    mine = plug_in(folder, "right")
    words = ["-k", "plugin/*", *SMALL, *QUICK]
    expect_exit(kbench("sweep", *mine, *words, "-a", "batch=1", "--out", run), 0)
    plug_in(folder, "slow")
    done = kbench("sweep", *mine, *words, "-a", "batch=1,2", "--resume", run)
    expect_exit(done, 2)
    expect("its rows are of other machine code of plugin/mine" in " ".join(done.stderr.split()), "why", done)
    expect(len(read_rows(run)) == 1, "nothing is added")
    done = at_a_held_device("sweep", *mine, "--resume", run)
    expect_exit(done, 2)
    expect("other machine code of plugin/mine" in " ".join(done.stderr.split()) and "waiting" not in done.stderr, "waits", done)
    done = kbench("sweep", "--resume", run)
    expect_exit(done, 2)
    expect("plugin/mine: no kernel matches; name the plug-in's file with --plugin" in done.stderr, "hint", done)
    done = kbench("check", *mine, "-k", "plugin/mien")
    expect("; did you mean 'plugin/mine'?" in done.stderr, "nearest", done)
    plug_in(folder, "right")
    expect_exit(kbench("sweep", *mine, *words, "-a", "batch=1,2", "--resume", run), 0)
    expect(len(read_rows(run)) == 2, "the same file goes on")


def replaced_during_a_run(folder):
    """The file changes while its kernel runs, and the worker dies: the next one would have other code under the same name."""
    run = os.path.join(folder, "run")
    words = ["-k", "plugin/*", *SMALL, *QUICK, "-a", "batch=1,2,4"]
    mine = plug_in(folder, "replaced")
    shutil.copyfile(os.path.join(PLANTED, "slow.so"), mine[1] + ".next")
    done = kbench("sweep", *mine, *words, "--out", run)
    expect_exit(done, 2)
    expect(f"--plugin {mine[1]}: replaced since this run began" in done.stderr and "begin anew, or" in done.stderr, "why", done)
    expect([row["batch"] for row in read_rows(run)] == ["1"], "what was measured stays, and nothing is added", done)
    expect_exit(kbench("sweep", *mine, *words, "--resume", run), 2)
    plug_in(folder, "replaced")
    done = kbench("sweep", *mine, *words, "--resume", run)
    expect_exit(done, 1)
    expect([row["status"] for row in read_rows(run)] == ["ok", "crash", "ok"], "the same file goes on", done)

    plug_in(folder, "replaced")
    with open(mine[1] + ".next", "wb") as file:
        file.write(b"half a file")
    done = kbench("check", *mine, "-k", "plugin/*", *SMALL, "-a", "batch=2,4")
    expect_exit(done, 2)
    expect("replaced since this run began" in done.stderr, "no plug-in at all", done)


def failed_rows_can_be_repeated(folder):
    """The line of a failed row is one for a shell, wherever its plug-in is and whatever others were there."""
    place = os.path.join(folder, "o'neill, kernels of mine " + 80 * "x")
    os.makedirs(place)
    run, plugins = os.path.join(folder, "run"), []
    for name in ("wrong_head", "right", "crash", "nan"):
        shutil.copy(os.path.join(PLANTED, name + ".so"), place)
        plugins += ["--plugin", os.path.join(place, name + ".so")]
    done = kbench("sweep", *plugins, "-k", "plugin/*,attn/host_mma", *SMALL, "-a", "batch=1", *QUICK, "--out", run)
    expect_exit(done, 1)
    rows = {row["kernel"]: row for row in read_rows(run)}
    for kernel, status in {"plugin/wrong_head": "wrong", "plugin/crash": "crash", "plugin/nan": "nan"}.items():
        expect(rows[kernel]["status"] == status, f"{rows[kernel]}", done)
        line = rows[kernel]["repeat"].replace("./kbench sweep", f"{PROGRAM} check", 1)
        again = subprocess.run(["sh", "-c", line], env=environment(), capture_output=True, text=True, timeout=60, check=False)
        expect(again.returncode == 1 and f"{kernel}  {status}" in again.stdout, f"{line} does not repeat it", again)
    expect("--plugin" not in rows["attn/host_mma"]["repeat"], "a kernel of the build asks for a plug-in")


def failed_stays_failed(folder):
    """A run that is finished by --resume is as good as all of its rows, also those that stood there."""
    run = os.path.join(folder, "run")
    words = [*plug_in(folder, "wrong_head"), "-k", "plugin/*,attn/host_mma", *SMALL, *QUICK]
    expect_exit(kbench("sweep", *words, "--out", run), 1)
    rows = read_rows(run)
    expect([row["status"] for row in rows].count("wrong") == 1 and len(rows) == 2, f"{rows}")
    for _ in "nothing left", "still nothing":
        done = kbench("sweep", *words, "--resume", run)
        expect_exit(done, 1)
        expect(len(read_rows(run)) == 2, "rows were measured again", done)


main(changed_code_is_stale, has_a_name, traced_processes_time_nothing, death_under_the_tracer_costs_a_trace, who_hangs_is_blamed,
     a_run_is_of_one_code, replaced_during_a_run, failed_rows_can_be_repeated, failed_stays_failed)
