#!/usr/bin/env python3
"""kbench gate from end to end: on runs with planted times, on a real run of the host engine, and on files that are wrong.

usage: test_gate.py PROGRAM SOURCE [TEST...]
"""
import csv
import json
import os
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
    head = ["op", "kernel", "engine", "status", "marks", "batch", "ctx", "tune", "cache", "t_med_ns", "t_lo_ns", "t_hi_ns", "seed",
            "repeat"]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        for kernel, (median, low, high, marks, status) in of.items():
            writer.writerow(["attn", f"attn/{kernel}", "host", status, marks, 1, 8192, "", "cold", median, low, high, 1,
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
    floor = {"op": "attn", "kernel": "attn/host_mma", "dims": {"batch": 1, "ctx": 8192}, "tune": "", "cache": "cold",
             "floor_pct": 3}
    for name, code, words in (("Another CPU", 0, "1 holds"), (device["name"], 4, "2.02x (1.96x..2.08x, noise floor 3.00 %)")):
        floors = write(folder, "results/runs/doctor-host.json", json.dumps({"schema": 1, "device": name, "rows": [floor]}))
        for where in (run, folder):
            done = kbench("gate", gate, where, env=env)
            expect_exit(done, code)
            expect(words in " ".join(done.stdout.split()), f"no word of '{words}'", done)
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
                        ("kernel = x\n", "gate.ini:1: kernel: stands before the first section"),
                        ("[heads\n", "']' is missing"), ("", "no section in it")):
        done = kbench("gate", write(folder, "gate.ini", text), run)
        expect_exit(done, 2)
        expect(words in done.stderr and not done.stdout, f"no word of '{words}'", done)
    gate = write(folder, "gate.ini", RATIO.format(2))
    for words in ((), (gate, run, run), (os.path.join(folder, "none.ini"),), (gate, os.path.join(folder, "none")), (gate, gate),
                  (gate,)):
        expect_exit(kbench("gate", *words), 2)
    expect("names no sweep to run" in kbench("gate", gate).stderr, "no reason")


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


main(verdicts, noise_floors, coverage, junit, wrong_input, runs_its_sweep, committed_gates)
