"""Every CUDA kernel under every tool of compute-sanitizer, at small and awkward shapes.

usage: sanitizers.py PROGRAM [--csv FILE] [--out DIR] [--jobs N] [--kernels GLOB[,GLOB]] [--tools a,b] [--sanitizer PROGRAM]
                     [--timeout SECONDS]
A line for each kernel and tool:
    clean          the kernel was checked under the tool, which reports nothing
    harness        it reports something, but only of the harness's own kernels (fills and hashes)
    reports        it names the kernel, or nothing that can be told apart
    does not run   the tool keeps the kernel from running: not covered by it
    wrong, hangs   the check fails under the tool, or isn't over in time
`where` counts the functions that reports name. What a clean line says is told by waits.py: a tool is blind to much.
Exit 1 where memcheck reports something or a kernel is wrong, 77 where there is no GPU or no compute-sanitizer.
"""
import argparse
import collections
import concurrent.futures
import csv
import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile

from waits import SUMMARY, TOOLS, find

SHAPES = {   # of each op; more than one problem where shapes choose other code
    "attn": ["heads=64,16", "batch=2", "ctx=512", "window=20", "topk=100", "ragged=1"],
    "attn_fp8": ["heads=64,16", "batch=2", "ctx=512", "window=20", "topk=100", "ragged=1"],
    "indexer": ["batch=1,3", "ctx=1K", "max_ctx=2K", "ragged=1"],
    "indexer_fp8": ["batch=1,3", "ctx=1K", "max_ctx=2K", "ragged=1"],
    "indexer_gemm": ["batch=2", "ctx=600"],
    "hc_pre": ["batch=3"],
    "topk": ["batch=2", "n=3000", "max_n=9000", "ragged=1"],
    "index_select": ["batch=2", "ctx=4K", "max_ctx=8K", "ragged=1"],
}
HARNESS = {"hash_kernel", "scatter_kernel", "fill_kernel", "poison_kernel", "canary_kernel", "spin_kernel", "empty_kernel"}
PLACE = re.compile(r"\b(?:at|in) (?:void )?([A-Za-z_][\w:]*)(?:<[^\n]*>)?\([^\n]*\)\+0x[0-9a-f]+(?: in ([\w.]+:\d+))?")
COLUMNS = ["op", "kernel", "tool", "verdict", "checked", "reports", "where"]


def kernels(options):
    done = subprocess.run([options.program, "list", "kernels", "--json"], capture_output=True, text=True, check=True)
    globs = options.kernels.split(",")
    return [k for k in json.loads(done.stdout)["kernels"]
            if k["engine"] == "cuda" and any(fnmatch.fnmatch(k["name"], glob) for glob in globs)]


def verdict(text, code, checked, reports, where):
    if code == 5:
        print(text)
        sys.exit(77)
    if re.search(r"^\s+(wrong|overwrote|nondeterministic)\b|\bwrong\b +replay", text, re.MULTILINE):
        return "wrong"
    if reports is None or (not checked and not reports):
        return "does not run"
    if not reports and not where:
        return "clean" if code == 0 else "does not run"
    return "harness" if where and {name for name, _ in where} <= HARNESS else "reports"


def run(options, kernel, tool):
    words = [options.program, "check", "-k", kernel["name"], "--device", "cuda", "-q", "--no-lock", "--timeout",
             str(options.timeout)]
    for dim in SHAPES.get(kernel["op"], []):
        words += ["-a", dim]
    words += ["--wrap", f"{options.sanitizer} --tool {tool} --print-limit 2000"]
    log = os.path.join(options.out, f"{tool}-{kernel['name'].replace('/', '-')}.txt")
    with open(log, "w+", encoding="utf-8", errors="replace") as file:
        try:
            done = subprocess.run(words, stdout=file, stderr=subprocess.STDOUT, timeout=options.timeout + 20, check=False)
            code = done.returncode
        except subprocess.TimeoutExpired:
            code = None
        file.seek(0)
        text = file.read()
    checked = len(re.findall(r"^ .*\bok\b", text, re.MULTILINE)) + len(re.findall("probe: nothing to check", text))
    counts = [int(n) for n in SUMMARY.findall(text)]
    reports = max(counts) if counts else None
    where = collections.Counter(PLACE.findall(text))    # function, file and line
    found = "hangs" if code is None else verdict(text, code, checked, reports, where)
    return {"op": kernel["op"], "kernel": kernel["name"], "tool": tool, "verdict": found, "checked": checked,
            "reports": "" if reports is None else reports,
            "where": "; ".join(f"{name} {line} {n}x" for (name, line), n in where.most_common(6))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--csv")
    parser.add_argument("--out")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--kernels", default="*")
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--sanitizer", default="compute-sanitizer")
    parser.add_argument("--timeout", type=int, default=60)
    options = parser.parse_args()
    options.sanitizer = find(options.sanitizer)
    options.out = options.out or tempfile.mkdtemp(prefix="kbench-sanitizers-")
    os.makedirs(options.out, exist_ok=True)
    work = [(kernel, tool) for tool in options.tools.split(",") for kernel in kernels(options)]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        lines = list(pool.map(lambda one: run(options, *one), work))
    for tool in options.tools.split(","):
        counts = collections.Counter(line["verdict"] for line in lines if line["tool"] == tool)
        print(f"{tool}: " + ", ".join(f"{n} {word}" for word, n in counts.most_common()))
        for line in lines:
            if line["tool"] == tool and line["verdict"] != "clean":
                print(f"  {line['verdict']}: {line['kernel']}: {line['reports']} reports; {line['where']}")
    if options.csv:
        with open(options.csv, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)
    bad = [line for line in lines if line["verdict"] in ("wrong", "hangs") or
           (line["tool"] == "memcheck" and line["verdict"] not in ("clean", "does not run"))]
    print(f"{len(lines)} runs, {len(bad)} failed; output in {options.out}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
