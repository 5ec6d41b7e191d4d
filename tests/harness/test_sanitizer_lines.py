#!/usr/bin/env python3
"""What sanitizers said is of this code: the lines of results/h200/sanitizers/kernels.csv against the kernels of this build.

usage: test_sanitizer_lines.py PROGRAM SOURCE [TEST...]
"""
import csv
import json
import os
import re

from common import SOURCE, Skip, expect, expect_exit, kbench, main

TOOLS = {"memcheck", "racecheck", "initcheck", "synccheck"}


def said(command):
    done = kbench(*command, "--json")
    expect_exit(done, 0)
    return json.loads(done.stdout)


def kernels_of_build():
    """Hash of each CUDA kernel's machine code, as the lines have it: over both architectures, by the toolkit that made them."""
    if not any(run["evidence"] == "fresh" and "/h200/" in run["folder"] for run in said(["list", "results"])["results"]):
        raise Skip("this build's toolkit is another than that of results/h200, or it has no CUDA code")
    kernels = {kernel["name"]: kernel for kernel in said(["list", "kernels"])["kernels"] if kernel["engine"] == "cuda"}
    if any(kernel["sm"] != "90a,120a" for kernel in kernels.values()):
        raise Skip("this build is not for sm 90a and 120a")
    return {name: kernel["code_hash"] for name, kernel in kernels.items()}


def committed_lines():
    with open(os.path.join(SOURCE, "results", "h200", "sanitizers", "kernels.csv"), newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def complaints(lines, kernels):
    """Lines of other code, or of no kernel; kernels without a line by each tool."""
    said_of = {}
    for line in lines:
        said_of.setdefault(line["kernel"], set()).add(line["tool"])
        if line["kernel"] not in kernels:
            yield f"{line['kernel']}: no such kernel"
        elif line["code_hash"] != kernels[line["kernel"]]:
            yield f"{line['kernel']} under {line['tool']}: of other code; tests/gpu.sh sanitizers says what this one does"
    for name in kernels:
        for tool in sorted(TOOLS - said_of.get(name, set())):
            yield f"{name}: no line by {tool}"


def lines_are_of_this_code(_):
    found = list(complaints(committed_lines(), kernels_of_build()))
    expect(not found, "\n".join(found))


def other_code_is_told(_):
    """The check can fail: a hash that changed, a kernel that came, one that went."""
    lines = committed_lines()
    kernels = {line["kernel"]: line["code_hash"] for line in lines}
    expect(not list(complaints(lines, kernels)), "the lines don't agree with each other")
    changed = {**kernels, "attn/mma": "0123"}
    expect(all("attn/mma under" in words for words in complaints(lines, changed)) and list(complaints(lines, changed)), "changed")
    expect(len(list(complaints(lines, {**kernels, "attn/new": "0123"}))) == len(TOOLS), "a kernel without lines")
    del kernels["attn/mma"]
    expect(list(complaints(lines, kernels))[0] == "attn/mma: no such kernel", "a kernel that went")


def findings_have_their_number(_):
    with open(os.path.join(SOURCE, "PROFILE_FINDINGS.md"), encoding="utf-8") as file:
        told = re.search(r"All (\d+) lines are of the code as it is", file.read())
    expect(told and int(told.group(1)) == len(committed_lines()), f"PROFILE_FINDINGS.md: not {len(committed_lines())} lines")


main(lines_are_of_this_code, other_code_is_told, findings_have_their_number)
