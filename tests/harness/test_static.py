#!/usr/bin/env python3
"""The collector of static facts against the toolkit's own tools, and the golden files' verdicts on planted figures.

usage: test_static.py PROGRAM SOURCE [TEST...]
"""
import glob
import json
import os
import re
import shutil
import stat
import subprocess
import sys

from common import PROGRAM, SOURCE, Skip, expect, expect_exit, kbench, main

COLLECTOR, GOLDEN = (os.path.join(SOURCE, "tools", name) for name in ("static_facts.py", "static_golden.py"))

# 64 floats a thread that are indexed by what is only known at run time: no registers can hold them.
SPILLS = """
extern "C" __global__ void spills(const float *in, float *out, int n)
{
    float kept[64] = {};
    for (int i = 0; i < n; i++) kept[(int)in[i] & 63] += in[i + threadIdx.x];
    for (int i = 0; i < n; i++) out[i] = kept[(int)in[i] & 63];
}
extern "C" __global__ void plain(const float4 *in, float4 *out)
{
    __shared__ float4 half[64];
    half[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = half[63 - threadIdx.x];
}
"""


def find(tool):
    """A tool of the toolkit, which may come as a package of its own."""
    beside = os.path.join(os.path.dirname(shutil.which("nvcc") or ""), tool)
    return os.environ.get(tool.upper()) or shutil.which(tool) or (beside if os.path.exists(beside) else None)


def facts(library, sms, folder):
    """(sm, function) -> numbers, in the order of list kernels --static --json."""
    table = os.path.join(folder, "facts.c")
    subprocess.run([sys.executable, COLLECTOR, table, "0", ",".join(sms), "x", library], check=True)
    with open(table, encoding="utf-8") as file:
        lines = re.findall(r'\{"x", "(\w+)", "(.*)", \{([\d, ]+)\}\}', file.read())
    return {(sm, function): tuple(map(int, numbers.split(", "))) for sm, function, numbers in lines}


def spills_are_seen(folder):
    nvcc = find("nvcc")
    if not nvcc:
        raise Skip("no nvcc")
    source, library = os.path.join(folder, "x.cu"), os.path.join(folder, "x.a")
    with open(source, "w", encoding="utf-8") as file:
        file.write(SPILLS)
    flags = ["--no-compress", "-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_90a,code=sm_90a"]
    done = subprocess.run([nvcc, "-c", "-Xptxas=-v", *flags, source, "-o", source + ".o"], capture_output=True, text=True,
                          check=True)
    subprocess.run(["ar", "rc", library, source + ".o"], check=True)
    found = facts(library, ["80", "90a"], folder)
    expect(len(found) == 4, f"{found}")
    # What ptxas says in words: stack, registers and shared memory.
    told = re.findall(r"function '(\w+)' for 'sm_(\w+)'.*?(\d+) bytes stack frame.*?Used (\d+) registers([^\n]*)",
                      done.stderr, re.S)
    for function, sm, stack, registers, rest in told:
        numbers, shared = found[sm, function], re.search(r"(\d+) bytes smem", rest)
        expect(numbers[:3] == (int(registers), int(stack), int(shared.group(1)) if shared else 0), f"{function} {sm}: {numbers}")
        expect(int(stack) == (256 if function == "spills" else 0), f"{function}: a stack of {stack}")
        expect((numbers[7] > 2) == (function == "spills"), f"{function} {sm}: {numbers[7]} local loads and stores")
    expect(len(told) == 4, done.stderr)
    expect(found["90a", "plain"][5] == 1 and found["80", "plain"][5] == 1, f"one load of 16 bytes: {found}")


def counted(cuobjdump, library):
    """The mix by the disassembler's words: (sm number, mangled function) -> instructions, tensor, 16 bytes, bulk, local."""
    done = subprocess.run([cuobjdump, "-sass", library], capture_output=True, text=True, check=True)
    found, sm, now = {}, None, None
    for line in done.stdout.splitlines():
        if head := re.search(r"arch = sm_(\d+)", line):
            sm = head.group(1)
        elif head := re.search(r"Function : (\S+)", line):
            now = found.setdefault((sm, head.group(1)), [0] * 5)
        elif met := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z0-9_.]+)", line):
            name, *ways = met.group(1).split(".")
            kinds = (True, name.endswith("MMA"), name in ("LDG", "LDGSTS") and "128" in ways, name in ("UBLKCP", "UTMALDG"),
                     name in ("LDL", "STL"))
            for i, kind in enumerate(kinds):
                now[i] += kind
    return found


def mix_is_the_disassemblers(folder):
    cuobjdump = find("cuobjdump")
    if not cuobjdump:
        raise Skip("no cuobjdump to compare with (CUOBJDUMP names one)")
    objects = glob.glob(os.path.join(os.path.dirname(PROGRAM), "..", "kernels", "libkernel_*.a.p", "*.cu.o"))
    if not objects:
        raise Skip("no CUDA kernels in this build")
    functions = 0
    for path in objects:
        library = os.path.join(folder, os.path.basename(path) + ".a")
        subprocess.run(["ar", "rc", library, path], check=True)
        want = counted(cuobjdump, path)
        filt = subprocess.run(["c++filt", "-p"], input="\n".join(name for _, name in want), capture_output=True, text=True,
                              check=True)
        plain = filt.stdout.replace("> >", ">>").strip("\n").split("\n")
        told = sorted((sm, name, *numbers) for (sm, _), name, numbers in zip(want, plain, want.values()))
        have = sorted((sm, name, *numbers[3:]) for (sm, name), numbers in facts(library, [], folder).items())
        expect(told == have, f"{path}:\n{[pair for pair in zip(told, have) if pair[0] != pair[1]]}")
        functions += len(have)
    print(f"{functions} functions of {len(objects)} objects")


def golden_verdicts(folder):
    """Growth is reported, spills fail, another toolkit is skipped, and --renew takes over."""
    figures = {"registers": 40, "stack": 0, "shared": 1024, "instructions": 100, "tensor": 8, "loads16": 4, "bulk": 0, "local": 0}
    program, golden = os.path.join(folder, "program"), os.path.join(folder, "golden")
    os.mkdir(golden)

    def verdict(*more, toolkit="13.0", **changed):
        functions = [{"kernel": "a/b", "sm": "90a", "function": "f<1, 2>", **figures, **changed}]
        with open(program, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\necho '{json.dumps({'static': {'toolkit': toolkit, 'functions': functions}})}'\n")
        os.chmod(program, os.stat(program).st_mode | stat.S_IXUSR)
        return subprocess.run([sys.executable, GOLDEN, program, golden, *more], capture_output=True, text=True, check=False)

    done = verdict()
    expect_exit(done, 77)
    expect("no golden file of CUDA 13.0" in done.stdout, "no reason", done)
    expect_exit(verdict("--renew"), 0)
    done = verdict()
    expect_exit(done, 0)
    expect("reported" not in done.stdout, "the same figures are reported", done)
    for changed, words in (({"registers": 41}, "registers 40 -> 41"), ({"shared": 2048}, "shared 1024 -> 2048"),
                           ({"tensor": 0}, "tensor 8 -> 0"), ({"function": "g"}, "is gone")):
        done = verdict(**changed)
        expect_exit(done, 0)
        expect(re.search(f"^reported: .*{words}$", done.stdout, re.M), f"no word of {words}", done)
    expect("reported" not in verdict(registers=39).stdout, "fewer registers are reported")
    for changed in ({"stack": 16}, {"local": 2}):
        expect_exit(verdict(**changed), 1)
        expect_exit(verdict(toolkit="12.9", **changed), 1)      # also where there is nothing to compare with
    expect_exit(verdict(toolkit="12.9"), 77)


def listed(folder):
    """On 80 columns, and the same figures as JSON."""
    del folder
    done = kbench("list", "kernels", "--static")
    expect_exit(done, 0)
    for line in done.stdout.splitlines():
        expect(len(line) <= 80, f"{len(line)} columns: {line}")
    asked = kbench("list", "kernels", "--static", "--json")
    expect_exit(asked, 0)
    for fact in json.loads(asked.stdout)["static"]["functions"]:
        expect(fact["kernel"] in done.stdout and fact["registers"] > 0, f"{fact}", done)
    expect_exit(kbench("list", "ops", "--static"), 2)
    expect_exit(kbench("list", "--static"), 2)


main(spills_are_seen, mix_is_the_disassemblers, golden_verdicts, listed)
