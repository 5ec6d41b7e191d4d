#!/usr/bin/env python3
"""Noise floors on the host engine: what doctor --floors says, and the file that it leaves for the gate."""
import json
import os

from common import SMALL, SOURCE, environment, expect, kbench, main


def learn_floors(folder, kernels, *more):
    """What doctor --floors says, and the file that it leaves."""
    for name in ("sweeps", "plots"):
        if not os.path.exists(os.path.join(folder, name)):
            os.symlink(os.path.join(SOURCE, name), os.path.join(folder, name))
    done = kbench("doctor", "--floors", "--device", "host", *SMALL[2:], "-a", "batch=1", "-k", kernels, *more,
                  env=environment(KBENCH_ROOT=folder))
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
        expect(abs(100 * max(abs(ratio - 1) for ratio in row["ratios"]) - row["floor_pct"]) < 1e-6, f"not the largest: {row}")
        tracer = [row[name] for name in ("again_pct", "loaded_pct", "traced_pct")]
        expect(tracer == [None] * 3, f"a tracer on the host engine: {row}")
    expect("this engine has no tracer" in learnt["loaded_why"], f"no reason: {learnt['loaded_why']}")
    expect("tracer: not measured: this engine has no tracer" in done.stdout, "not told why", done)


main(floors)
