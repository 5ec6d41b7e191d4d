"""Every CUDA kernel under every tool of compute-sanitizer, at small and awkward shapes.

usage: sanitizers.py PROGRAM [--csv FILE] [--out DIR] [--jobs N] [--kernels GLOB[,GLOB]] [--tools a,b] [--sanitizer PROGRAM]
                     [--timeout SECONDS]
A line for each kernel, variant (tunables, shapes) and tool:
    clean          all problems were checked under the tool, which reports nothing
    harness        it reports something, but only of the harness's own kernels (fills and hashes)
    reports        it names the kernel, or nothing that can be told apart
    partly         it reports nothing of the kernel, but fewer were checked than there are problems
    does not run   the tool keeps the kernel from running: not covered by it
    unsupported    the kernel takes none of the problems on this device
    wrong, hangs   the check fails under the tool, or isn't over in time
`where` counts the functions that reports name. What a clean line says is told by waits.py: a tool is blind to much.
Exit 1 where memcheck is not clean or a kernel is wrong, 2 where nothing ran, 77 where there is no GPU or no compute-sanitizer.
"""
import argparse
import collections
import concurrent.futures
import csv
import fnmatch
import json
import math
import os
import re
import subprocess
import sys
import tempfile

from waits import SUMMARY, TOOLS, find

ATTENTION = ["heads=64,16", "batch=2", "ctx=512", "zip=window,topk,ragged", "window=20,1", "topk=100,5", "ragged=1,0"]
SHAPES = {   # of each op; more than one problem where shapes choose other code. zip: these walk together
    "attn": ATTENTION,
    "attn_fp8": ATTENTION,
    "indexer": ["batch=1,3", "ctx=1K", "max_ctx=2K", "ragged=1"],
    "indexer_fp8": ["batch=1,3", "ctx=1K", "max_ctx=2K", "ragged=1"],
    "indexer_gemm": ["batch=2", "ctx=600"],
    "hc_pre": ["batch=3"],
    "topk": ["batch=2", "n=3000", "max_n=9000", "ragged=1"],
    "index_select": ["batch=2", "ctx=4K", "max_ctx=8K", "ragged=1"],
}
# Beside what a kernel chooses by itself: tunables, and shapes that are not its op's, which reach what it has for other shapes.
VARIANTS = {
    "attn/mma": [(["pair=2"], [])],
    "attn/splitk": [(["path=1", "splits=1,4"], []), (["path=2", "cluster=1", "splits=1,4"], []),
                    (["path=2", "cluster=2", "splits=2,4,8"], [])],
    "attn_fp8/splitk": [(["path=1", "splits=1,4"], []), (["path=2", "cluster=1", "splits=1,4"], []),
                        (["path=2", "cluster=2", "splits=2,4,8"], [])],
    "hc_pre/bf16_splitk": [(["splits=1,4"], [])],
    "index_select/fused": [(["whole=64"], ["batch=1", "ctx=12K", "max_ctx=16K", "ragged=1"])],
    "indexer/live": [(["path=1,2,3,4"], [])],
    "indexer_fp8/live": [(["path=1,2,3,4,5"], [])],
    "topk/cluster": [(["cluster=2,8", "alone=1"], [])],
}
HARNESS = {"hash_kernel", "scatter_kernel", "fill_kernel", "poison_kernel", "canary_kernel", "spin_kernel", "empty_kernel"}
PLACE = re.compile(r"\b(?:at|in) (?:void )?([A-Za-z_][\w:]*)(?:<[^\n]*>)?\([^\n]*\)\+0x[0-9a-f]+(?: in ([\w.]+:\d+))?")
CHECKED = re.compile(r"^ .*(?:\bok  error .* checked|probe: nothing to check)$", re.MULTILINE)
UNSUPPORTED = re.compile(r"^ .*  unsupported  ", re.MULTILINE)
COLUMNS = ["op", "kernel", "code_hash", "variant", "tool", "verdict", "problems", "checked", "reports", "where"]


def refuse(words):
    print(f"sanitizers.py: {words}", file=sys.stderr)
    sys.exit(2)


def kernels(options):
    """Those that --kernels asks for, each pattern of at least one."""
    try:
        done = subprocess.run([options.program, "list", "kernels", "--json"], capture_output=True, text=True, check=True)
        there = [k for k in json.loads(done.stdout)["kernels"] if k["engine"] == "cuda"]
    except (OSError, subprocess.CalledProcessError, ValueError, KeyError) as why:
        return refuse(f"{options.program} lists no kernels: {why}")
    globs = options.kernels.split(",")
    unknown = [glob for glob in globs if not any(fnmatch.fnmatch(k["name"], glob) for k in there)]
    if unknown:
        refuse(f"no CUDA kernel '{','.join(unknown)}': {options.program} list kernels names them")
    return [k for k in there if any(fnmatch.fnmatch(k["name"], glob) for glob in globs)]


def variants(kernel):
    """Tunables and shapes of a kernel's lines; first what it chooses by itself."""
    shapes = SHAPES.get(kernel["op"], [])
    return [([], shapes), *((tunes, own or shapes) for tunes, own in VARIANTS.get(kernel["name"], []))]


def problems(tunes, shapes):
    """How many that is: all values crossed, but those that walk together."""
    together = [name for word in shapes if word.startswith("zip=") for name in word[4:].split(",")[1:]]
    return math.prod(len(values.split(",")) for name, values in (word.split("=") for word in [*tunes, *shapes])
                     if name not in ["zip", *together])


def verdict(text, code, line, where):
    """line: its problems, checked and reports (None: the tool has said nothing)."""
    checked, reports = line["checked"], line["reports"]
    if code is None:
        return "hangs"
    if code == 5:
        print(text)
        sys.exit(77)
    if re.search(r"^\s+(wrong|overwrote|nondeterministic)\b|\bwrong\b +replay", text, re.MULTILINE):
        return "wrong"
    if not line["problems"]:
        return "unsupported"
    if reports is None or (not checked and not reports):
        return "does not run"
    harness = {name for name, _ in where} <= HARNESS
    if (where and not harness) or (reports and not where):
        return "reports"
    if checked < line["problems"]:
        return "partly"
    if where:
        return "harness"
    return "clean" if code == 0 else "does not run"


def run(options, kernel, number, tool):
    """A line: variant `number` of the kernel under a tool."""
    tunes, shapes = variants(kernel)[number]
    asked = problems(tunes, shapes)
    words = [options.program, "check", "-k", kernel["name"], "--device", "cuda", "-q", "--no-lock", "--timeout",
             str(options.timeout)]
    for dim in shapes:
        words += ["--zip", dim[4:]] if dim.startswith("zip=") else ["-a", dim]
    for tune in tunes:
        words += ["-t", tune]
    words += ["--wrap", f"{options.sanitizer} --tool {tool} --print-limit 2000"]
    log = os.path.join(options.out, f"{tool}-{kernel['name'].replace('/', '-')}-{number}.txt")
    with open(log, "w+", encoding="utf-8", errors="replace") as file:
        try:
            done = subprocess.run(words, stdout=file, stderr=subprocess.STDOUT, timeout=options.timeout + 10 * (asked + 1),
                                  check=False)
            code = done.returncode
        except subprocess.TimeoutExpired:
            code = None
        file.seek(0)
        text = file.read()
    counts = [int(n) for n in SUMMARY.findall(text)]
    where = collections.Counter(PLACE.findall(text))    # function, file and line
    own = [] if shapes is SHAPES.get(kernel["op"]) else shapes
    line = {"op": kernel["op"], "kernel": kernel["name"], "code_hash": kernel["code_hash"], "variant": " ".join([*tunes, *own]),
            "tool": tool, "problems": max(asked - len(UNSUPPORTED.findall(text)), 0), "checked": len(CHECKED.findall(text)),
            "reports": max(counts) if counts else None,
            "where": "; ".join(f"{name} {place} {n}x" for (name, place), n in where.most_common(6))}
    line["verdict"] = verdict(text, code, line, where)
    return line


def show(lines, tools):
    for tool in tools:
        counts = collections.Counter(line["verdict"] for line in lines if line["tool"] == tool)
        print(f"{tool}: " + ", ".join(f"{n} {word}" for word, n in counts.most_common()))
        for line in lines:
            if line["tool"] == tool and line["verdict"] != "clean":
                print(f"  {line['verdict']}: {line['kernel']} {line['variant']}: {line['checked']} of {line['problems']} checked, "
                      f"{line['reports']} reports; {line['where']}")


def write(path, lines):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--csv")
    parser.add_argument("--out")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--kernels", default="*")
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--sanitizer", default="compute-sanitizer")
    parser.add_argument("--timeout", type=int, default=60)
    options = parser.parse_args()
    options.tools = options.tools.split(",")
    unknown = [tool for tool in options.tools if tool not in TOOLS]
    if unknown:
        refuse(f"no tool '{','.join(unknown)}': they are {', '.join(TOOLS)}")
    if options.jobs < 1 or options.timeout < 1:
        refuse("--jobs and --timeout are 1 or more")
    return options


def main():
    options = arguments()
    chosen = kernels(options)
    options.sanitizer = find(options.sanitizer)
    options.out = options.out or tempfile.mkdtemp(prefix="kbench-sanitizers-")
    os.makedirs(options.out, exist_ok=True)
    work = [(kernel, number, tool) for tool in options.tools for kernel in chosen for number in range(len(variants(kernel)))]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        lines = list(pool.map(lambda one: run(options, *one), work))
    show(lines, options.tools)
    if options.csv:
        write(options.csv, lines)
    bad = [line for line in lines if line["verdict"] in ("wrong", "hangs") or
           (line["tool"] == "memcheck" and line["verdict"] not in ("clean", "unsupported"))]
    if all(line["verdict"] in ("does not run", "unsupported") for line in lines):
        refuse(f"nothing ran under {options.sanitizer}; output in {options.out}")
    print(f"{len(lines)} runs, {len(bad)} failed; output in {options.out}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
