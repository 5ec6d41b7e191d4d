#!/usr/bin/env python3
"""Runs that are cut short: killed workers, a killed parent, Ctrl-C, a closed pipe. No finished row is lost, and --resume
completes the set."""
import json
import os
import random
import signal
import subprocess
import time

from common import INTERRUPT, PROGRAM, QUICK, SHAPE, SMALL, TINY, children, environment, expect, expect_exit, identity, \
    kbench, kill, main, read_rows, start, wait_for

# A dozen row groups of a few kernels: long enough to be hit in the middle.
LONG = [*SHAPE, "-a", "batch=1,2,3", "-a", "topk=16,32,48,64", "-k", "attn/host_*", *QUICK]


def lines_of(out):
    """The whole lines of rows.csv so far."""
    try:
        with open(os.path.join(out, "rows.csv"), encoding="utf-8") as file:
            return [line for line in file.read().splitlines(True) if line.endswith("\n")]
    except OSError:
        return []


def uninterrupted(folder):
    out = os.path.join(folder, "whole")
    began = time.monotonic()
    expect_exit(kbench("sweep", *LONG, "--out", out), 0)
    return sorted(identity(row) for row in read_rows(out)), time.monotonic() - began


def finish(out):
    """Words that go on with a run, or begin it where it was killed before it had written anything."""
    return ["--resume", out] if lines_of(out) or os.path.exists(os.path.join(out, "env.json")) else ["--out", out]


def workers_killed(folder):
    """A worker killed at 20 random moments: each costs at most the row it was at, and the run goes on."""
    wanted, took = uninterrupted(folder)
    rng = random.Random(20)
    kills = runs = 0
    while kills < 20:
        runs += 1
        out = os.path.join(folder, f"run{runs}")
        process = start("sweep", *LONG, "--out", out)
        here = 0
        if runs % 2:   # a run whose worker dies while it measures the device ends: every other one is let come to its rows
            wait_for(lambda: process.poll() is not None or lines_of(out))
        while process.poll() is None and kills < 20:
            time.sleep(rng.uniform(0.01, took / 8))
            for worker in children(process.pid):
                kill(worker, signal.SIGKILL)
                kills, here = kills + 1, here + 1
        stdout, stderr = process.communicate(timeout=120)
        rows = read_rows(out) if lines_of(out) else []
        # Killed before it had opened the device, a worker can't be told from one that never will: then the run may end with words.
        expect(process.returncode in (0, 1, 5), f"exit {process.returncode}\n{stdout}{stderr}")
        lost = [row for row in rows if row["status"] != "ok"]
        expect(len(lost) <= here and all(row["status"] == "crash" for row in lost), f"{here} kills, but lost {lost}")
        before = lines_of(out)
        done = kbench("sweep", *finish(out), *LONG)
        expect(done.returncode in (0, 1), "resume", done)
        expect(lines_of(out)[:len(before)] == before, "a finished row was lost or changed")
        same = sorted(identity(row) for row in read_rows(out)) == wanted
        expect(same, "resumed rows are not those of an uninterrupted run", done)


def killed_before_any_launch(folder):
    """A worker killed while it prepares a group, in no kernel's launch, costs no row: another one prepares it again."""
    out = os.path.join(folder, "run")
    process = start("sweep", "-k", "attn/host_*", "-a", "batch=16", "-a", "ctx=32K", *QUICK, "--out", out)
    said = ""
    while "ceilings" not in said:   # the device is open, the group's inputs are being made
        said = process.stdout.readline()
        expect(said, "the run ended before it began")
    workers = children(process.pid)
    expect(workers, "no worker to kill")
    for worker in workers:
        kill(worker, signal.SIGKILL)
    stdout, stderr = process.communicate(timeout=120)
    rows = read_rows(out)
    expect(len(rows) > 1 and all(row["status"] == "ok" for row in rows), f"{rows}\n{stdout}{stderr}")


def parent_killed(folder):
    """The parent killed at random moments, resumed each time, until it comes through: the same set of rows, none twice."""
    wanted, took = uninterrupted(folder)
    rng = random.Random(21)
    out = os.path.join(folder, "run")
    for turn in range(10):
        before = lines_of(out)
        process = start("sweep", *finish(out), *LONG)
        time.sleep(rng.uniform(0.05, took / 3))
        workers = children(process.pid)
        kill(process.pid, signal.SIGKILL)
        process.communicate()
        expect(lines_of(out)[:len(before)] == before, "a finished row was lost or changed")
        gone = wait_for(lambda: not any(os.path.exists(f"/proc/{worker}/exe") for worker in workers), 10)
        expect(gone, "a worker outlived its parent")
    expect_exit(kbench("sweep", *finish(out), *LONG), 0)
    expect(sorted(identity(row) for row in read_rows(out)) == wanted, "resumed rows are not those of an uninterrupted run")
    done = kbench("sweep", "--resume", out, *LONG)
    expect_exit(done, 0)
    expect(sorted(identity(row) for row in read_rows(out)) == wanted, "resuming a whole run added rows", done)


def torn_line(folder):
    """A last line cut short, as a kill within a write leaves it, is cut off and measured again."""
    wanted, _ = uninterrupted(folder)
    path = os.path.join(folder, "whole", "rows.csv")
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) - 17)
    expect_exit(kbench("sweep", "--resume", os.path.join(folder, "whole"), *LONG), 0)
    expect(sorted(identity(row) for row in read_rows(os.path.join(folder, "whole"))) == wanted, "not the same set")


def interrupted(folder):
    out = os.path.join(folder, "run")
    process = start("sweep", *LONG, "--out", out)
    expect(wait_for(lambda: len(lines_of(out)) > 2 or process.poll() is not None), "no row within a minute")
    process.send_signal(INTERRUPT)
    stdout, stderr = process.communicate(timeout=30)
    expect(process.returncode == 130, f"exit {process.returncode}\n{stdout}{stderr}")
    rows = read_rows(out)
    expect(rows and all(row["status"] for row in rows), "no complete rows")
    expect(all(row["kernel"] in stdout for row in rows), f"no partial table\n{stdout}{stderr}")
    expect("--resume" in stdout + stderr, f"no word of --resume\n{stdout}{stderr}")
    expect_exit(kbench("sweep", "--resume", out, *LONG), 0)


def closed_pipe(folder):
    out = os.path.join(folder, "run")
    process = start("sweep", *LONG, "--out", out)
    process.stdout.readline()
    process.stdout.close()
    stderr = process.stderr.read()
    code = process.wait(timeout=120)
    expect(code in (0, 141), f"exit {code}\n{stderr}")
    rows = read_rows(out)
    expect(rows and all(row["status"] == "ok" for row in rows), "rows were lost")


def a_profile_stays_one(folder):
    """Rows that a sweep would add to it would have no profile, and none to come."""
    out = os.path.join(folder, "run")
    expect_exit(kbench("profile", *TINY, *QUICK, "-k", "attn/host_mma", "--out", out), 0)
    with open(os.path.join(out, "rows.csv"), "rb+") as file:
        file.truncate(len(b"".join(file.read().splitlines(True)[:-1])))
    rows = read_rows(out)
    done = kbench("sweep", "--resume", out)
    expect_exit(done, 2)
    expect("finish it with kbench profile --resume" in done.stderr and read_rows(out) == rows, "rows without a profile", done)
    expect_exit(kbench("profile", "--resume", out), 0)


def two_at_once(folder):
    """Two runs that start together share neither folder, socket nor memory."""
    for name in ("sweeps", "plots"):
        os.symlink(os.path.join(environment()["KBENCH_ROOT"], name), os.path.join(folder, name))
    env = environment(KBENCH_ROOT=folder)
    words = [PROGRAM, "sweep", *SMALL, "-a", "batch=1,2", "-k", "attn/host_*", *QUICK]
    both = [subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for process in both:
        stdout, stderr = process.communicate(timeout=120)
        expect(process.returncode == 0, f"exit {process.returncode}\n{stdout}{stderr}")
    runs = os.path.join(folder, "results", "runs")
    expect(len(os.listdir(runs)) == 2, f"{os.listdir(runs)}")
    one, other = ([identity(row) for row in read_rows(os.path.join(runs, run))] for run in os.listdir(runs))
    expect(one and one == other, "not the same rows")


def a_run_is_of_one_device(folder):
    """--resume of a run that another device began, or nobody knows which, adds no row and says why."""
    out = os.path.join(folder, "run")
    env_file = os.path.join(out, "env.json")
    expect_exit(kbench("sweep", *LONG, "--out", out), 0)
    with open(os.path.join(out, "rows.csv"), "r+b") as file:
        file.truncate(os.path.getsize(file.name) * 3 // 4)
    with open(env_file, encoding="utf-8") as file:
        mine = json.load(file)
    gpu = {"engine": "cuda", "uuid": "GPU-1b2c", "name": "NVIDIA H200", "mig": "1g.18gb"}
    others = ({"name": "Another CPU, 64 threads"}, "Another CPU, 64 threads"), (gpu, "NVIDIA H200 (GPU-1b2c, MIG 1g.18gb)")
    before = lines_of(out)
    for other, words in others:
        with open(env_file, "w", encoding="utf-8") as file:
            json.dump(dict(mine, device=dict(mine["device"], **other)), file)
        done = kbench("sweep", "--resume", out, *LONG)
        expect_exit(done, 2)
        said = " ".join(done.stderr.split())
        why = f"its rows are of another device, {words}, and this is {mine['device']['name']}; finish it there"
        expect(why in said, "why", done)
        expect(lines_of(out) == before, "rows of this device were added", done)
    os.remove(env_file)
    done = kbench("sweep", "--resume", out, *LONG)
    expect_exit(done, 2)
    expect("nobody knows of which device" in " ".join(done.stderr.split()) and lines_of(out) == before, "no env.json", done)
    with open(env_file, "w", encoding="utf-8") as file:
        json.dump(mine, file)
    expect_exit(kbench("sweep", "--resume", out, *LONG), 0)
    expect(len(lines_of(out)) > len(before), "its own device finishes nothing")


def left_behind(folder):
    """Nothing of a run stays in the temporary folder."""
    env = environment(TMPDIR=folder)
    expect_exit(kbench("sweep", *TINY, *QUICK, "--out", os.path.join(folder, "run"), env=env), 0)
    expect(os.listdir(folder) == ["run"], f"left behind: {os.listdir(folder)}")


main(workers_killed, killed_before_any_launch, parent_killed, torn_line, interrupted, closed_pipe, a_profile_stays_one, two_at_once,
     left_behind, a_run_is_of_one_device)
