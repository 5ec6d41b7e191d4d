#!/usr/bin/env python3
"""Noise floors on the host engine: what doctor --floors says, and the file that it leaves for the gate."""
import json
import os
import re

from common import INTERRUPT, SMALL, SOURCE, environment, expect, expect_exit, kbench, main, start


def learn_floors(folder, kernels, *more):
    """What doctor --floors says, and the file that it leaves."""
    for name in ("sweeps", "plots"):
        if not os.path.exists(os.path.join(folder, name)):
            os.symlink(os.path.join(SOURCE, name), os.path.join(folder, name))
    done = kbench("doctor", "--floors", "--device", "host", *SMALL[2:], "-a", "batch=1", "-k", kernels, *more,
                  env=environment(KBENCH_ROOT=folder), cwd=folder)    # of the current folder, too, floors are read
    expect(done.returncode in (0, 4), "no floors", done)      # 4: of a machine that is busy enough
    with open(os.path.join(folder, "results", "runs", "doctor-host.json"), encoding="utf-8") as file:
        return done, json.load(file)


def floors(folder):
    """doctor --floors: every repeat of every row counts, and the file says of which device it is."""
    done, learnt = learn_floors(folder, "attn/host_mma,attn/host_perhead")
    for line in done.stdout.splitlines():
        expect(len(line) <= 80 or line.startswith("written: "), f"{len(line)} columns: {line}")
    expect(learnt["device"] and [row["kernel"] for row in learnt["rows"]] == ["attn/host_mma", "attn/host_perhead"], f"{learnt}")
    for row in learnt["rows"]:
        expect(len(row["ratios"]) == 3, f"not three repeats: {row}", done)
        expect("kbench doctor --floors --device host" in row["command"], f"not how to repeat it: {row}", done)
        expect(abs(100 * max(abs(ratio - 1) for ratio in row["ratios"]) - row["floor_pct"]) < 1e-6, f"not the largest: {row}")
        tracer = [row[name] for name in ("again_pct", "loaded_pct", "gone_pct", "traced_pct")]
        expect(tracer == [None] * 4, f"a tracer on the host engine: {row}")
    words = re.search(r"^repeat: (.*(\n  .*)*)", done.stdout, re.M).group(1).replace("\\\n  ", "")
    expect(words == learnt["rows"][0]["command"], f"other words to repeat it: {words}", done)
    expect("this engine has no tracer" in learnt["loaded_why"], f"no reason: {learnt['loaded_why']}")
    expect("tracer: not measured: this engine has no tracer" in done.stdout, "not told why", done)


def rows_stay(folder):
    """Rows that are not measured now stay as they are, those that are take their places."""
    _, before = learn_floors(folder, "attn/host_mma,attn/host_perhead")
    done, learnt = learn_floors(folder, "attn/host_perhead")
    expect([row["kernel"] for row in learnt["rows"]] == ["attn/host_mma", "attn/host_perhead"], f"lost: {learnt}", done)
    expect(learnt["rows"][0] == before["rows"][0] and learnt["rows"][1]["ratios"] != before["rows"][1]["ratios"], f"{learnt}", done)
    expect(".old" not in done.stderr, "a whole file was set aside", done)


def interrupted(folder):
    """Ctrl-C keeps the rows whose repeats are all there, beside those of before."""
    _, before = learn_floors(folder, "attn/host_perhead")
    process = start("doctor", "--floors", "--device", "host", *SMALL, "-a", "batch=1:64:+1", "-k", "attn/host_mma",
                    env=environment(KBENCH_ROOT=folder), cwd=folder)
    for line in process.stdout:
        if "batch=2" in line:
            break
    process.send_signal(INTERRUPT)
    said, _ = process.communicate(timeout=60)
    expect(process.returncode == 130 and "written: " in said, f"exit {process.returncode}: {said}")
    with open(os.path.join(folder, "results", "runs", "doctor-host.json"), encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    expect(rows[0] == before["rows"][0] and [row["dims"]["batch"] for row in rows[1:3]] == [1, 2], f"{rows}")
    expect(all(len(row["ratios"]) == 3 for row in rows) and len(rows) < 65, f"{rows}")


def bad_file_is_kept(folder):
    """What is no file of floors, or another device's, is kept under another name, and a person is told."""
    _, learnt = learn_floors(folder, "attn/host_perhead")
    path = os.path.join(folder, "results", "runs", "doctor-host.json")
    for words, why, name in (('{"schema": 2, "rows": [', "not what doctor --floors writes", "doctor-host.json.old"),
                             (json.dumps({**learnt, "device": "Another CPU"}), "of another device, Another CPU",
                              "doctor-host.json.old2")):
        with open(path, "w", encoding="utf-8") as file:
            file.write(words)
        done, learnt = learn_floors(folder, "attn/host_perhead")
        expect([row["kernel"] for row in learnt["rows"]] == ["attn/host_perhead"], f"{learnt}", done)
        told = [line for line in done.stderr.splitlines() if why in line]
        expect(len(told) == 1 and path in told[0] and f"kept as {os.path.join(folder, 'results', 'runs', name)}," in told[0],
               f"not told that it is no file of these floors: {why}", done)
        with open(os.path.join(folder, "results", "runs", name), encoding="utf-8") as file:
            expect(file.read() == words, f"{name} is not what was there", done)


def one_json_value(folder):
    """With --json stdout is one value, which has the rows of the file; words go to stderr."""
    done, learnt = learn_floors(folder, "attn/host_perhead", "--json")
    said = json.loads(done.stdout)
    expect(said["device"]["name"] == learnt["device"] and said["floors"]["rows"] == learnt["rows"], f"{said['floors']}", done)
    expect(said["floors"]["worst"]["floor_pct"] == learnt["rows"][0]["floor_pct"], f"not the worst: {said['floors']}", done)
    expect("written: " in done.stderr, "not told where", done)


def nothing_is_measured_in_vain(folder):
    """A selection without rows is refused before the machine is measured."""
    done = kbench("doctor", "--floors", "--device", "host", "-k", "attn/host_mna", env=environment(KBENCH_ROOT=folder), cwd=folder)
    expect_exit(done, 2)
    expect("host_mma" in done.stderr and "ceilings" not in done.stdout and "timer" not in done.stdout, "measured first", done)


main(floors, nothing_is_measured_in_vain, rows_stay, interrupted, bad_file_is_kept, one_json_value)
