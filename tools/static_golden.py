#!/usr/bin/env python3
"""Holds registers, shared memory and local memory of the CUDA kernels against golden files, one an architecture and toolkit.

usage: static_golden.py PROGRAM FOLDER [--renew]

Growth, and the loss of tensor instructions, wide loads or bulk copies, is reported in lines that begin with 'reported:'; spills
and local memory fail. Another toolkit than the files' is skipped (77), after a look for local memory. --renew writes FOLDER's
files anew from this build.
"""
import csv
import json
import os
import subprocess
import sys

NUMBERS = ["registers", "stack", "shared", "instructions", "tensor", "loads16", "bulk", "local"]
MAY_NOT_GROW = ["registers", "shared"]
MAY_NOT_VANISH = ["tensor", "loads16", "bulk"]


def built(program):
    """The toolkit, and by architecture {(kernel, function): numbers}."""
    done = subprocess.run([program, "list", "kernels", "--static", "--json"], capture_output=True, text=True, check=True)
    facts = json.loads(done.stdout)["static"]
    of = {}
    for fact in facts["functions"]:
        of.setdefault(fact["sm"], {})[fact["kernel"], fact["function"]] = {name: fact[name] for name in NUMBERS}
    return facts["toolkit"], of


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return {(row["kernel"], row["function"]): {name: int(row[name]) for name in NUMBERS} for row in csv.DictReader(file)}


def write(path, facts):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["kernel", "function", *NUMBERS])
        for (kernel, function), numbers in sorted(facts.items()):
            writer.writerow([kernel, function, *numbers.values()])


def local_memory(sm, facts):
    """One line a function that spills or keeps an array in local memory."""
    return [f"{kernel}, sm {sm}, {function}: {numbers['stack']} bytes of stack, {numbers['local']} loads and stores of local memory"
            for (kernel, function), numbers in sorted(facts.items()) if numbers["stack"] or numbers["local"]]


def differences(sm, facts, golden):
    """One line a function that is worse than its golden line, or has none; and how many have changed otherwise."""
    lines, others = [], 0
    for key, numbers in sorted(facts.items()):
        name = f"{key[0]}, sm {sm}, {key[1]}"
        if key not in golden:
            lines.append(f"{name}: has no golden line yet")
            continue
        grown = [what for what in MAY_NOT_GROW if numbers[what] > golden[key][what]]
        lost = [what for what in MAY_NOT_VANISH if golden[key][what] and not numbers[what]]
        lines += [f"{name}: {what} {golden[key][what]} -> {numbers[what]}" for what in grown + lost]
        others += not grown and not lost and numbers != golden[key]
    lines += [f"{kernel}, sm {sm}, {function}: is gone" for kernel, function in sorted(golden.keys() - facts.keys())]
    return lines, others


def main():
    program, folder, renew = sys.argv[1], sys.argv[2], sys.argv[3:] == ["--renew"]
    toolkit, of = built(program)
    if not of:
        print("no CUDA kernels in this build")
        sys.exit(77)
    failed, reported, without = [], [], []
    for sm, facts in sorted(of.items()):
        path = os.path.join(folder, f"static-{sm}-{toolkit}.csv")
        failed += local_memory(sm, facts)
        if renew:
            write(path, facts)
            print(path)
        elif not os.path.exists(path):
            without.append(sm)
        else:
            lines, others = differences(sm, facts, read(path))
            reported += lines
            print(f"sm {sm}: {len(facts)} functions, {len(lines)} to report, {others} otherwise changed")
    for line in reported:
        print(f"reported: {line}")
    for line in failed:
        print(f"local memory: {line}")
    if reported:
        print("'tools/static_golden.py PROGRAM tests/golden --renew' takes these over")
    if without and not failed:
        print(f"no golden file of CUDA {toolkit} for sm {', '.join(without)}; it spills nowhere")
    sys.exit(1 if failed else 77 if len(without) == len(of) else 0)


main()
