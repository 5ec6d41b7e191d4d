#!/usr/bin/env python3
"""Runs `kbench check` on planted plug-ins and demands that each is caught by the rule that it breaks.

usage: planted.py PROGRAM FOLDER host|cuda [NAME...]      FOLDER holds the plug-ins, NAME.so; no NAME: all of that engine

Exit 0: every one was caught as intended. 1: one was not, with what was said of it instead.
"""
import os
import re
import subprocess
import sys

# Small, and ragged: one request is full, one empty, slots of -1 lie between the others.
INDEXER = ["-a", "batch=4", "-a", "ctx=1K", "-a", "max_ctx=4K", "-a", "ragged=1"]
TOPK = ["-a", "batch=4", "-a", "n=3000", "-a", "max_n=4K", "-a", "k=100", "-a", "scores=plateau", "-a", "ragged=1"]
PROBLEM = ["-a", "batch=4", "-a", "heads=8", "-a", "ctx=256", "-a", "window=16", "-a", "topk=32", "-a", "ragged=1"]

BOTH = {
    # name: (status, what the reason must say)
    "right": ("ok", ""),
    "slow": ("ok", ""),
    "wrong_value": ("wrong", r"out\[.*the tolerance\); 1 of 32 rows"),
    "wrong_head": ("wrong", r"out\[.*; 1 of 32 rows"),
    "swapped_rows": ("wrong", r"out\[.* of 32 rows"),
    "lse_with_sink": ("wrong|nan", r"lse\["),
    "unwritten_tail": ("wrong", r"out\[.*was not written"),
    "nan": ("nan", r"out\[.* is -?nan"),
    "reads_slot_0": ("nan", r"out\["),
    "ignores_length": ("wrong|nan", r"out\[|lse\["),
    "overrun": ("overwrite", r"wrote .*behind .* of out"),
    "overrun_end": ("overwrite", r"wrote .*behind the end of out"),
    "underrun": ("overwrite", r"wrote .*before the begin.* of out"),
    "overrun_workspace": ("overwrite", r"wrote .*behind the end of its workspace"),
    "written_input": ("wrong", r"input q was written"),
    "written_cache": ("wrong", r"input window_kv was written"),
    "dirty_zeroed": ("wrong", r"counters not zero again"),
    "reads_workspace": ("wrong|nan", r"out\["),
    "unsteady": ("wrong", r"differs between launches"),
    "baked_length": ("wrong|nan", r"other inputs"),
    "memoised": ("wrong|nan", r"other inputs"),
    "crash": ("crash", r"signal 11|illegal"),
    "hang": ("timeout", r"longer than 2 s"),
    "assert": ("crash", r"signal 6|assert"),
    "exit0": ("crash", r"exit code 0"),
}
CHOICE = {
    "other_ties": ("ok", ""),
    "wrong_choice": ("wrong", r"request \d: number \d+ of the scores selected, from the highest down, is .*, should be"),
    "past_length": ("wrong", r"slot\[.*none of the -?\d+ live entries"),
}
HOST = {
    **CHOICE,
    "flat": ("ok", ""),
    "hidden_max": ("ok", ""),         # right: that its cost follows max_ctx is for test_growth.py to find
    "declared_max": ("ok", ""),
    "not_clean": ("wrong", r"logits\[.* is 0, should be -inf; 1 of 4 rows"),
}
CUDA = {
    "stale_graph": ("wrong|nan", r"other inputs"),
    "allocates": ("capture_fail", r"allocates"),
    "allocates_and_frees": ("capture_fail", r"allocates|synchronises"),
    "allocates_in_stream": ("capture_fail", r"allocates"),
    "synchronises": ("capture_fail", r"synchronises"),
    "waits_outside_capture": ("capture_fail", r"synchronises"),
    "other_stream": ("wrong|capture_fail", r"not written|another stream"),   # whichever of the two is looked at first
}
REFUSED = {
    "old_abi": r"ABI",
    "other_size": r"struct kernel has",
    "other_layout": r"dims or tensors of op 'attn'",
    "unknown_op": r"attm.*attn",      # and the nearest name is suggested
    "no_symbol": r"kbench_plugin",
}


def check(program, path, engine):
    name = os.path.basename(path)[:-len(".so")]
    problem = TOPK if name in CHOICE else INDEXER if name in HOST else PROBLEM
    command = [program, "check", "--plugin", path, "-k", "plugin/*", "--device", engine, "--timeout", "2"] + problem
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL)


def verdict_of(name, done):
    """Status and reason from the line that a row leaves on stderr: "[1/2] plugin/nan batch=...: nan: first launch: ..."."""
    lines = re.findall(rf"^\[\d+/\d+\] plugin/{name} [^:]*: (.*)$", done.stderr, re.M)
    if len(lines) != 1:
        return "none", f"{len(lines)} rows instead of one"
    status, colon, reason = lines[0].partition(": ")
    return (status, reason) if colon else ("ok", "")


def caught(program, path, engine, want_status, want_reason):
    """None, or what was said instead."""
    name = os.path.basename(path)[:-len(".so")]
    done = check(program, path, engine)
    status, reason = verdict_of(name, done)
    said = f"{status}: {reason}"
    print(said)
    if not re.fullmatch(want_status, status):
        why = f"wanted {want_status}"
    elif done.returncode != (0 if status == "ok" else 1):
        why = f"exit {done.returncode}"
    elif not re.search(want_reason, reason):
        why = f"wanted a reason with '{want_reason}'"
    elif status != "ok" and "--row" not in done.stdout:
        why = "no line that repeats it"
    else:
        return None
    return f"{said}; {why}\n{done.stdout}{done.stderr}"


def refused(program, path, engine, want):
    done = check(program, path, engine)
    print(done.stderr.strip())
    if done.returncode != 2 or done.stdout or not re.search(want, done.stderr):
        return f"exit {done.returncode}: {done.stdout}{done.stderr}; wanted exit 2, nothing run and '{want}'"
    return None


def main():
    program, folder, engine = sys.argv[1:4]
    wanted = {**BOTH, **(CUDA if engine == "cuda" else HOST)}
    names = sys.argv[4:] or [*wanted, *([] if engine == "cuda" else REFUSED)]
    missed = 0
    for name in names:
        path = os.path.join(folder, name + ".so")
        print(f"{name}: ", end="", flush=True)
        if name in REFUSED:
            why = refused(program, path, engine, REFUSED[name])
        else:
            why = caught(program, path, engine, *wanted[name])
        if why:
            missed += 1
            print(f"NOT CAUGHT AS INTENDED: {name}: {why}")
    print(f"{len(names) - missed} of {len(names)} as intended")
    sys.exit(1 if missed else 0)


main()
