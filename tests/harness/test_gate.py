#!/usr/bin/env python3
"""kbench gate from end to end: on runs with planted times, on a real run of the host engine, and on files that are wrong.

usage: test_gate.py PROGRAM SOURCE [TEST...]
"""
import csv
import json
import os
import shutil
import xml.etree.ElementTree

from common import SHAPE, SOURCE, environment, expect, expect_exit, kbench, main

RATIO = """[heads]
kernel = attn/host_mma
over = attn/host_perhead
at-least = {}
"""


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def planted_run(folder, **of):
    """Two rows of one problem: kernel -> (median, lower, upper, marks, status)."""
    path = os.path.join(folder, "rows.csv")
    head = ["op", "kernel", "engine", "status", "marks", "batch", "heads", "ctx", "window", "topk", "ratio", "ragged", "tune",
            "cache", "t_med_ns", "t_lo_ns", "t_hi_ns", "seed", "repeat"]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        for kernel, (median, low, high, marks, status) in of.items():
            writer.writerow(["attn", f"attn/{kernel}", "host", status, marks, 1, 64, 8192, 128, 512, 4, 0, "", "cold", median, low,
                             high, 1,
                             f"./kbench sweep --row 'attn/{kernel} batch=1'"])
    return path


def verdicts(folder):
    gate = write(folder, "gate.ini", RATIO.format(2))
    slow = (400, 396, 404, "", "ok")
    for kernel, code, words in (((100, 99, 101, "", "ok"), 0, "1 holds"),
                                ((300, 297, 303, "", "ok"), 3, "1.33x"),                     # the planted regression
                                ((201, 190, 210, "", "ok"), 4, "the limit lies within the interval"),
                                ((120, 119, 121, "noisy", "ok"), 4, "attn/host_mma is marked noisy"),
                                ((90, 89, 91, "noisy", "ok"), 0, "1 holds"),
                                ((100, 99, 101, "", "wrong"), 3, "attn/host_mma is wrong"),
                                (("", "", "", "", "oom"), 3, "attn/host_mma is oom")):
        run = planted_run(folder, host_mma=kernel, host_perhead=slow)
        done = kbench("gate", gate, run)
        expect_exit(done, code)
        expect(words in " ".join(done.stdout.split()), f"no word of '{words}'", done)
        expect(code != 3 or "--row 'attn/host_mma batch=1'" in done.stdout, "no line that repeats the row", done)
        for line in done.stdout.splitlines():
            expect(len(line) <= 80, f"{len(line)} columns: {line}")
    run = planted_run(folder, host_mma=(90, 89, 91, "noisy", "ok"), host_perhead=slow)
    expect_exit(kbench("gate", gate, run, "--strict"), 4)
    expect_exit(kbench("gate", gate, os.path.dirname(run)), 0)             # a folder, too


def noise_floors(folder):
    """What doctor --floors has learnt of the run's device widens the interval; of another device it does nothing."""
    gate = write(folder, "gate.ini", RATIO.format(2))
    run = planted_run(folder, host_mma=(100, 99.9, 100.1, "", "ok"), host_perhead=(202, 201.9, 202.1, "", "ok"))
    device = {"engine": "host", "name": "A CPU, 2 threads", "uuid": "host"}
    write(folder, "env.json", json.dumps({"schema": 1, "device": device}))
    env = environment(KBENCH_ROOT=folder)
    expect_exit(kbench("gate", gate, run, env=env), 0)
    os.makedirs(os.path.join(folder, "results", "runs"))
    dims = {"batch": 1, "heads": 64, "ctx": 8192, "window": 128, "topk": 512, "ratio": 4, "ragged": 0}
    floor = {"op": "attn", "kernel": "attn/host_mma", "dims": dims, "tune": "", "cache": "cold",
             "floor_pct": 3}
    wide = "2.02x (1.96x..2.08x, noise floor 3.00 %)"
    for schema, name, code, words in ((2, "Another CPU", 0, "1 holds"), (1, device["name"], 4, wide), (2, device["name"], 4, wide)):
        floors = write(folder, "results/runs/doctor-host.json", json.dumps({"schema": schema, "device": name, "rows": [floor]}))
        for where in (run, folder):
            done = kbench("gate", gate, where, env=env)
            expect_exit(done, code)
            expect(words in " ".join(done.stdout.split()), f"no word of '{words}'", done)
    done = kbench("gate", gate, shutil.copy(run, os.path.join(folder, "other.csv")), env=env)     # of whichever run it is
    expect_exit(done, 0)
    env_json = write(folder, "env.json", '{"schema": 1, "device": {"engine": "host", "name": "A CPU, 2 thr')
    done = kbench("gate", gate, run, env=env)
    expect_exit(done, 2)
    expect(env_json in done.stderr and "which noise floors hold" in done.stderr, "a damaged env.json passes", done)
    write(folder, "env.json", json.dumps({"schema": 1, "device": device}))
    write(folder, "results/runs/doctor-host.json", '{"device": "A CPU, 2 threads", "rows": [{"floor_pct": NaN}]}')
    done = kbench("gate", gate, run, env=env)
    expect_exit(done, 2)
    expect(floors in done.stderr and "not what doctor --floors writes" in done.stderr, "damaged floors pass", done)


def coverage(folder):
    """What is missing turns a gate red, and a gate that judges nothing is not green."""
    run = planted_run(folder, host_mma=(100, 99, 101, "", "ok"))
    done = kbench("gate", write(folder, "gate.ini", RATIO.format(2)), run)
    expect_exit(done, 3)
    expect("no time of attn/host_perhead" in done.stdout, "no reason", done)
    done = kbench("gate", write(folder, "gate.ini", RATIO.format(2) + "batch = 1,2\n"), run)
    expect_exit(done, 3)
    expect("batch=2: the run has no row of attn/host_mma" in done.stdout, "no reason", done)
    done = kbench("gate", write(folder, "gate.ini", RATIO.format(2) + "device = cuda\n"), run)
    expect_exit(done, 4)
    expect("1 left out" in done.stdout, "no count", done)


def no_times(folder):
    """Times that are no numbers are refused by line, and a median that lies outside of its interval is no pass."""
    gate = write(folder, "gate.ini", RATIO.format(1))
    for median, code, words in (("inf", 2, "rows.csv:2: 'inf': not a number"), ("1e400", 2, "rows.csv:2: '1e400': not a number"),
                                ("0x10", 2, "rows.csv:2: '0x10': not a number"), ("nan", 2, "rows.csv:2: 'nan': not a number"),
                                ("1e308", 4, "a median outside of its own interval"),
                                ("1e-308", 4, "a median outside of its own interval"), ("100", 0, "1 holds")):
        run = planted_run(folder, host_mma=(median, 99, 101, "", "ok"), host_perhead=(200, 198, 202, "", "ok"))
        done = kbench("gate", gate, run)
        expect_exit(done, code)
        expect(words in " ".join((done.stdout + done.stderr).split()), f"no word of '{words}'", done)


PLAN = """[global]
timeout = 8s
cache = cold
seed = 1
heads = 64
window = 128
topk = 512
ratio = 4
ragged = 0
variant = attn/host_mma
variant = attn/host_perhead

[group 1]
batch = 1
ctx = 8K
"""


def incomplete(folder):
    """Rows that the plan has and the run lacks: nothing of it is taken as whole."""
    gate, plan = write(folder, "gate.ini", RATIO.format(2)), write(folder, "plan.ini", PLAN)
    run = planted_run(folder, host_mma=(100, 99, 101, "", "ok"), host_perhead=(400, 396, 404, "", "ok"))
    with open(run, encoding="utf-8") as file:
        whole = file.read()

    def judged(code, *words, text=whole, where=folder):
        write(folder, "rows.csv", text)
        done = kbench("gate", gate, where)
        expect_exit(done, code)
        said = " ".join((done.stdout + done.stderr).split())
        for word in words:
            expect(word in said, f"no word of '{word}'", done)

    judged(0, "1 holds")
    resume = f"./kbench sweep --resume {folder}"
    write(folder, "plan.ini", PLAN + "\n[group 2]\nbatch = 2\nctx = 8K\n")
    missing = ("[the whole run]", "2 of 4 rows are not there: attn/host_mma batch=2,heads=64,ctx=8K", "attn/host_mma is planned")
    judged(4, *missing)
    judged(4, *missing, where=run)
    expect(resume in kbench("gate", gate, folder).stdout.replace("\\\n" + 18 * " ", ""), "no line that finishes it")
    write(folder, "gate.ini", RATIO.format(2) + "batch = 1\n")
    judged(4, "1 holds", "2 of 4 rows are not there")                       # of no gate's rows: the run is not whole all the same
    write(folder, "gate.ini", RATIO.format(9))
    judged(3, "1 broken", "2 of 4 rows are not there")                      # what is broken already stays so
    write(folder, "gate.ini", RATIO.format(2) + "batch = 3\n")
    judged(3, "the run has no row of attn/host_mma")                        # and what nobody planned will never come
    for variant, code in (("variant = attn/host_mma", 0), ("variant = attn/host_mma splits=2,path=1", 4)):
        write(folder, "gate.ini", RATIO.format(2))
        write(folder, "plan.ini", PLAN.replace("variant = attn/host_mma\n", variant + "\n"))
        judged(code)
    for key, value in (("cache", "hot"), ("seed", "2"), ("heads", "32"), ("ragged", "1")):
        write(folder, "plan.ini", PLAN.replace(f"\n{key} = ", f"\n{key} = {value} # "))
        judged(4, "2 of 4 rows are not there")
    write(folder, "plan.ini", PLAN)
    for cut in (len(whole) - 1, len(whole) - 30, whole.rindex("attn/host_per")):
        judged(4, "rows.csv:3: the last line is cut short", "1 of 2 rows", text=whole[:cut])
    judged(4, "rows.csv:4: the last line is cut short", text=whole + 'attn,"attn/host_mma,')
    judged(4, "2 of 2 rows are not there", text=whole[:whole.index("\n") + 1])
    write(folder, "plan.ini", PLAN.replace("attn/host_mma", "plugin/mine"))
    write(folder, "gate.ini", RATIO.format(2).replace("attn/host_mma", "plugin/mine"))
    judged(0, "1 holds", text=whole.replace("attn/host_mma", "plugin/mine"))
    judged(4, "plugin/mine is planned", text=whole.replace("attn,attn/host_mma", "attn,plugin/else"))
    write(folder, "plan.ini", PLAN.replace("attn/host_perhead", "plugin/mine"))   # its op is that of its neighbours
    write(folder, "gate.ini", RATIO.format(2).replace("attn/host_perhead", "plugin/mine"))
    judged(4, "plugin/mine is planned", "0 broken", text=whole.replace("attn,attn/host_perhead", "attn,attn/host_else"))
    write(folder, "plan.ini", PLAN.replace("attn/host_perhead", "plugin/mine").replace("attn/host_mma", "plugin/other"))
    write(folder, "gate.ini", RATIO.format(2).replace("attn/host_perhead", "plugin/mine").replace("attn/host_mma", "plugin/other"))
    judged(4, "plugin/mine is planned", "0 broken", text=whole.replace("attn/host_mma", "plugin/other"))
    write(folder, "gate.ini", RATIO.format(2))
    write(folder, "plan.ini", PLAN.replace("8K", "many"))
    judged(2, "plan.ini:15: ctx = many: not one value")
    os.remove(plan)
    judged(0, "nobody knows whether rows are missing")
    judged(2, "rows.csv:3: the last line is cut short, and no plan.ini", text=whole[:-1])


def columns(folder):
    """Without a column that tells rows apart, or bad from good, there is no verdict; with the plan or without."""
    gate = write(folder, "gate.ini", RATIO.format(2))
    run = planted_run(folder, host_mma=(100, 99, 101, "noisy", "ok"), host_perhead=(4000, 3960, 4040, "", "ok"))
    with open(run, newline="", encoding="utf-8") as file:
        head, *rows = list(csv.reader(file))
    for planned in (False, True):
        if planned:
            write(folder, "plan.ini", PLAN)
        for gone in range(len(head)):
            with open(run, "w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([row[:gone] + row[gone + 1:] for row in [head, *rows]])
            done = kbench("gate", gate, run)
            expect_exit(done, 0 if head[gone] == "repeat" else 2)
            expect(head[gone] in done.stderr or head[gone] == "repeat", f"no word of {head[gone]}", done)


def junit(folder):
    run = planted_run(folder, host_mma=(300, 297, 303, "", "ok"), host_perhead=(400, 396, 404, "", "ok"))
    gate, out = write(folder, "gate.ini", RATIO.format(2).replace("heads", 'a <b> & "c"')), os.path.join(folder, "junit.xml")
    expect_exit(kbench("gate", gate, run, "--junit", out), 3)
    suite = xml.etree.ElementTree.parse(out).getroot()
    expect(suite.get("tests") == "1" and suite.get("failures") == "1" and suite.get("errors") == "0", f"{suite.attrib}")
    case = suite.find("testcase")
    expect(case.get("classname") == 'a <b> & "c"' and "1.33x" in case.find("failure").get("message"), f"{case.attrib}")
    expect_exit(kbench("gate", gate, run, "--junit", out), 2)              # nothing is overwritten unasked
    expect_exit(kbench("gate", gate, run, "--junit", out, "--force"), 3)
    expect_exit(kbench("gate", gate, run, "--junit", os.path.join(folder, "none", "junit.xml")), 5)


def wrong_input(folder):
    run = planted_run(folder, host_mma=(100, 99, 101, "", "ok"), host_perhead=(400, 396, 404, "", "ok"))
    for text, words in (("[heads]\nkernel = attn/host_mna\nover = attn/host_perhead\nat-least = 2\n",
                         "gate.ini:2: attn/host_mna: no such kernel, neither in this build nor in the run; "
                         "did you mean 'attn/host_mma'?"),
                        (RATIO.format("x"), "gate.ini:4: at-least = x: is not a ratio"),
                        (RATIO.format(2) + "bacth = 1\n", "did you mean 'batch'?"),
                        ("[code]\nkernels = *\nstack = 0\narch = 99\n" + RATIO.format(2), "gate.ini:4: arch = 99: no build"),
                        ("[code]\nkernels = *\nstack = 0\ntoolkit = 99.0\n" + RATIO.format(2),
                         "gate.ini:4: toolkit = 99.0: neither this build nor a file in tests/golden is of it"),
                        ("kernel = x\n", "gate.ini:1: kernel: stands before the first section"),
                        ("[heads\n", "']' is missing"), ("", "no section in it")):
        done = kbench("gate", write(folder, "gate.ini", text), run)
        expect_exit(done, 2)
        expect(words in done.stderr and not done.stdout, f"no word of '{words}'", done)
    for line in ("arch = 100a", "arch = 90a", "toolkit = 13.0"):            # no mistake, whether this build has it or not
        text = f"[code]\nkernels = *\nlocal = 1M\n{line}\n"
        expect_exit(kbench("gate", write(folder, "gate.ini", text + RATIO.format(2)), run), 0)
    gate = write(folder, "gate.ini", RATIO.format(2))
    for words in ((), (gate, run, run), (os.path.join(folder, "none.ini"),), (gate, os.path.join(folder, "none")), (gate, gate),
                  (gate,)):
        expect_exit(kbench("gate", *words), 2)
    expect("names no sweep to run" in kbench("gate", gate).stderr, "no reason")
    expect_exit(kbench("gate", gate, run, env=environment(KBENCH_DEVICE="host", KBENCH_ROUNDS="3")), 0)
    for words in (("--rounds", "3"), ("--out", "x"), ("--device", "host"), ("--seed", "1"), ("--budget", "2s"), ("--no-lock",)):
        done = kbench("gate", gate, run, *words)
        expect_exit(done, 2)
        expect(f"gate: {words[0]} is for the sweep that a gate runs itself" in done.stderr and not done.stdout, "no reason", done)


def runs_its_sweep(folder):
    """A real run, small: a limit that no kernel can keep goes red, and the same run holds another."""
    options = "".join(f"{word.replace('=', ' = ')}\n" for word in SHAPE if "=" in word)
    write(folder, "small.ini", f"[small]\nkernels = attn/host_mma,attn/host_perhead\nbatch = 1\n{options}")
    gate, out = write(folder, "gate.ini", "[global]\nsweep = small.ini\n" + RATIO.format(1e6)), os.path.join(folder, "run")
    done = kbench("gate", gate, "--device", "host", "--rounds", "7", "--out", out)
    expect_exit(done, 3)
    expect("1 broken" in done.stdout and os.path.exists(os.path.join(out, "rows.csv")), "no run, or no verdict", done)
    expect_exit(kbench("gate", write(folder, "gate.ini", RATIO.format(1e-6)), out), 0)
    done = kbench("gate", write(folder, "gate.ini", "[global]\nsweep = no-such\n" + RATIO.format(2)), "--device", "host")
    expect_exit(done, 2)


def committed_gates(folder):
    """Every gate file of the tree is read; those without a sweep hold."""
    for name in sorted(os.listdir(os.path.join(SOURCE, "gates"))):
        path = os.path.join(SOURCE, "gates", name)
        with open(path, encoding="utf-8") as file:
            needs_run = "\nsweep =" in file.read()
        if needs_run:
            done = kbench("gate", path, planted_run(folder, host_mma=(1, 1, 1, "", "ok")))
            expect(done.returncode in (3, 4), "not red without its rows", done)
        else:
            done = kbench("gate", path)
            expect(done.returncode == 0 or (done.returncode == 4 and " 0 broken, 0 inconclusive" in done.stdout), "broken", done)


main(verdicts, no_times, noise_floors, coverage, incomplete, columns, junit, wrong_input, runs_its_sweep, committed_gates)
