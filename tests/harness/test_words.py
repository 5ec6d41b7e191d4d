#!/usr/bin/env python3
"""Bad input: exit 2, the place, what is wrong and the nearest name, and nothing has run."""
import os
import re

from common import SMALL, TINY, environment, expect, kbench, main


def refused(folder, words, *patterns, env=None, code=2):
    done = kbench(*words, env=env, cwd=folder)
    expect(done.returncode == code, f"{words}: wanted exit {code}", done)
    for pattern in patterns:
        expect(re.search(pattern, done.stderr), f"{words}: no '{pattern}' on stderr", done)
    expect(not done.stdout, f"{words}: something on stdout", done)
    expect(not os.path.exists(os.path.join(folder, "run")), f"{words}: a run folder was made", done)
    return done


def command_line(folder):
    out = ["--out", os.path.join(folder, "run")]
    refused(folder, ["swep"], "swep", "sweep")
    refused(folder, ["sweep", "--rouns", "3"], "--rouns", "--rounds")
    refused(folder, ["check", "--budget", "3s"], "--budget", "sweep")
    refused(folder, ["check", "--out", "x"], "--out", "sweep")
    refused(folder, ["sweep", "--rounds", "many", *out], "many", "whole number")
    refused(folder, ["sweep", "--budget", "-3", *out], "-3")
    refused(folder, ["sweep", "--rounds"], "value is missing")
    refused(folder, ["sweep", "--device", "cdua", *out], "cdua", "host")
    refused(folder, ["sweep", "--device", "host", "-k", "attn/host_mam", *out], "attn/host_mam", "attn/host_mma")
    refused(folder, ["sweep", "--device", "host", "-k", "nothing/*", *out], "nothing/")
    refused(folder, ["sweep", "--device", "host", "-a", "bacth=1", *out], "bacth", "batch")
    refused(folder, ["sweep", "--device", "host", "-a", "batch=", *out], "batch")
    refused(folder, ["sweep", "--device", "host", "-a", "batch=1:8:*1", *out], r"batch=?.*1:8:\*1|1:8:\*1")
    refused(folder, ["sweep", "--device", "host", "-a", "batch=99999999999999999999", *out], "99999999999999999999")
    refused(folder, ["sweep", "--device", "host", "-a", "batch=0", *out], "batch")
    refused(folder, ["sweep", "--device", "host", "-t", "split=2", *out], "split")
    refused(folder, ["list", "kernles"], "kernles", "kernels")
    kinds = r"not a kind of file that a run leaves; rows\.csv, .* and \w+\.csv are"
    with open(os.path.join(folder, "there.csv"), "w", encoding="utf-8") as file:
        file.write("a,b\n")
    refused(folder, ["list", "columns", "there.csv"], r"there\.csv: " + kinds)
    refused(folder, ["list", "columns", "cuonters.csv"], kinds + "; did you mean 'counters'")
    for word in ("\x1b[31m" + 3000 * "x", "counters\n\x07.csv"):
        for words in (["list", "columns", word], ["list", word], ["list", "ops", word]):
            said = refused(folder, words).stderr
            expect(len(said) < 400 and said.count("\n") == 1 and said[:-1].isprintable(), f"{words}: {said!r}")
    refused(folder, ["list", ""], "'': an empty argument; leave it out")
    refused(folder, ["list", "--", ""], "'': an empty argument; leave it out")
    refused(folder, ["sweep", "\x1b[31m.ini", *out], r"\?\[31m\.ini")
    refused(folder, ["report", *65 * ["run-of-mine"]], "run-of-mine: more than 64 arguments; use")
    refused(folder, ["report", os.path.join(folder, "nowhere")], "nowhere")
    refused(folder, ["plot", os.path.join(folder, "nowhere")], "nowhere")
    refused(folder, ["sweep", "nowhere.ini", *out], "nowhere.ini")
    refused(folder, ["sweep", "--resume", os.path.join(folder, "nowhere"), *SMALL])
    refused(folder, ["sweep", *TINY, *out], "KBENCH_SEDE", "KBENCH_SEED", env=environment(KBENCH_SEDE="3"))
    refused(folder, ["profile", *TINY, *out, "--wrap", "env"], "nothing is timed, traced or counted", "use check --wrap")
    refused(folder, ["sweep", *TINY, "--plugin", os.path.join(folder, "nowhere.so"), *out], "nowhere.so")


def job_files(folder):
    out = ["--device", "host", "--out", os.path.join(folder, "run")]

    def job(text, *patterns):
        with open(os.path.join(folder, "job.ini"), "w", encoding="utf-8") as file:
            file.write(text)
        refused(folder, ["sweep", "job.ini", *out], *patterns)

    job("[a]\nkernels = attn/*\nbacth = 1\n", r"job\.ini:3: ", "bacth", "batch")
    job("[a]\nkernels = attn/host_mam\n", r"job\.ini:2: ", "attn/host_mam", "attn/host_mma")
    job("[a]\nkernels = attn/*\nbatch = 1:64:2:3\n", r"job\.ini:3: ")
    job("[a]\nkernels = attn/*\nbatch = one\n", r"job\.ini:3: ", "one")
    job("[global]\nrouns = 3\n[a]\nkernels = attn/*\n", r"job\.ini:2: ", "rouns", "rounds")
    job("[a]\nkernels attn\n", r"job\.ini:2: ")
    job("kernels = attn/*\n", r"job\.ini:1: ")
    job("[global]\ninclude = nowhere.ini\n[a]\nkernels = attn/*\n", r"job\.ini:2: ", r"nowhere\.ini")
    job("[a]\nkernels = attn/*\ninclude = nowhere.ini\n", r"job\.ini:3: ", r"\[global\]")
    job("", r"job\.ini")


main(command_line, job_files)
