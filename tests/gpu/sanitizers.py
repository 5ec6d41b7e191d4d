"""Every CUDA kernel under every tool of compute-sanitizer, at small and awkward shapes.

usage: sanitizers.py PROGRAM [--csv FILE] [--out DIR] [--jobs N] [--kernels GLOB[,GLOB]] [--tools a,b] [--sanitizer PROGRAM]
                     [--timeout SECONDS] [--waits FILE] [--known FILE] [--more 'OPTIONS']
A line for each kernel, variant (tunables, shapes) and tool:
    clean          all problems were checked under the tool, which reports nothing
    explained      all were, and known_reports.csv (see known.py) covers all that the tool reports
    harness        it reports something else, but only of the harness's own kernels (fills and hashes)
    reports        it reports something else, or more than it printed
    partly         nothing else is reported of the kernel, but fewer were checked than there are problems
    does not run   the tool keeps the kernel from running: not covered by it
    unsupported    the kernel takes none of the problems on this device
    wrong, hangs   the check fails under the tool, or isn't over in time
The reference of large problems runs beside another kernel of its op, as often as that was checked in full by it.
`where` counts reports by the places of their accesses. What a clean line says is told by waits.py, a tool is blind to much; its
table, --waits, also holds the proofs of known reports. A known report that is not made any more is told.
Exit 1 where a line is not clean, explained or unsupported, 2 where nothing ran, 77 where there is no GPU or no compute-sanitizer.
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

import known as known_reports
from sanitizer_tool import TOOLS, VARIABLE, counted, find, reports_of

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
    "index_select/two_step": [(["overlap=1"], [])],
    "indexer/live": [(["path=1,2,3,4"], [])],
    "indexer_fp8/live": [(["path=1,2,3,4,5"], [])],
    "topk/cluster": [(["cluster=2,8", "alone=1"], [])],
    "topk/radix": [([], ["batch=2", "n=60K", "max_n=64K", "ragged=1", "scores=random,rising"])],
}
HARNESS = {"hash_kernel", "scatter_kernel", "random_kernel", "read_kernel", "latency_kernel", "poison_kernel", "spin_kernel",
           "spin_cycles_kernel", "empty_kernel"}
# The reference of large problems is no kernel to check by name. It computes what --reference-s leaves to it beyond two items, for
# one of these, which leave nothing to report themselves.
BESIDE = ["simt", "fp32_simt", "early_exit"]
NAME = re.compile(r"^  ([\w.-]+/[\w.-]+)(?= |$)")
CHECKED = re.compile(r"\bok  error .* (\S+) % checked$|probe: nothing to check$")
UNSUPPORTED = re.compile(r"^ .*  unsupported  ", re.MULTILINE)
COLUMNS = ["op", "kernel", "code_hash", "variant", "tool", "verdict", "problems", "checked", "reports", "where", "explained_by",
           "sanitizer", "program"]
PASSES = ["clean", "explained", "unsupported"]


def refuse(words):
    print(f"sanitizers.py: {words}", file=sys.stderr)
    sys.exit(2)


def kernels(options):
    """Those that --kernels asks for, each pattern of at least one."""
    try:
        done = subprocess.run([options.program, "list", "kernels", "--json"], capture_output=True, text=True, check=True)
        there = [k for k in json.loads(done.stdout)["kernels"] if k["engine"] == "cuda"]
        options.beside = {k["op"]: k["name"] for k in there if k["name"].split("/")[1] in BESIDE}
        done = subprocess.run([options.program, "--version"], capture_output=True, text=True, check=True)
        options.version = done.stdout.split()[-1]
    except (OSError, subprocess.CalledProcessError, ValueError, KeyError, IndexError) as why:
        return refuse(f"{options.program} lists no kernels: {why}")
    globs = options.kernels.split(",")
    unknown = [glob for glob in globs if not any(fnmatch.fnmatch(k["name"], glob) for k in there)]
    if unknown:
        refuse(f"no CUDA kernel '{','.join(unknown)}': {options.program} list kernels names them")
    return [k for k in there if any(fnmatch.fnmatch(k["name"], glob) for glob in globs)]


def variants(kernel):
    """Tunables and shapes of a kernel's lines; first what it chooses by itself."""
    shapes = SHAPES.get(kernel["op"], [])
    if kernel.get("oracle"):
        return [([], ["batch=3" if word.startswith("batch=") else word for word in shapes])]
    return [([], shapes), *((tunes, own or shapes) for tunes, own in VARIANTS.get(kernel["name"], []))]


def problems(tunes, shapes):
    """How many that is: all values crossed, but those that walk together."""
    together = [name for word in shapes if word.startswith("zip=") for name in word[4:].split(",")[1:]]
    return math.prod(len(values.split(",")) for name, values in (word.split("=") for word in [*tunes, *shapes])
                     if name not in ["zip", *together])


def checked(text, name, in_full):
    """How many rows of a kernel were checked: its name may stand in a line of its own."""
    count, of = 0, None
    for line in text.splitlines():
        begins, done = NAME.match(line), CHECKED.search(line)
        of = begins.group(1) if begins else of
        if done and of == name and (not in_full or done.group(1) == "100"):
            count += 1
        of = None if done else of
    return count


def verdict(text, code, line, uncovered):
    """line: its problems, checked and reports (None: the tool has said nothing); uncovered: the reports that nothing explains, None
    for each that was not printed."""
    if code is None:
        return "hangs"
    if code == 5:
        print(text)
        sys.exit(77)
    if re.search(r"^\s+(wrong|overwrote|nondeterministic)\b|\bwrong\b +replay", text, re.MULTILINE):
        return "wrong"
    if not line["problems"]:
        return "unsupported"
    if line["reports"] is None or (not line["checked"] and not line["reports"]):
        return "does not run"
    harness = [report for report in uncovered if report and report.accesses and
               all(any(place.split()[0] in HARNESS for place in access) for access in report.accesses)]
    if len(harness) < len(uncovered):
        return "reports"
    if line["checked"] < line["problems"]:
        return "partly"
    if harness:
        return "harness"
    if code:
        return "does not run"
    return "explained" if line["reports"] else "clean"


def command(options, kernel, tunes, shapes):
    """Words that check it, and the kernel whose rows count."""
    name = options.beside.get(kernel["op"]) if kernel.get("oracle") else kernel["name"]
    words = [options.program, "check", "-k", name or kernel["name"], "--device", "cuda", "-q", "--no-lock", "--timeout",
             str(options.timeout), *(["--reference-s", "0"] if kernel.get("oracle") else [])]
    for dim in shapes:
        words += ["--zip", dim[4:]] if dim.startswith("zip=") else ["-a", dim]
    for tune in tunes:
        words += ["-t", tune]
    return words, name or kernel["name"]


def logged(words, path, limit_s):
    """The exit status (None: it hung) and the output of a run. The file holds it without reports that are alike."""
    with open(path, "w+", encoding="utf-8", errors="replace") as file:
        try:
            code = subprocess.run(words, stdout=file, stderr=subprocess.STDOUT, timeout=limit_s, check=False).returncode
        except subprocess.TimeoutExpired:
            code = None
        file.seek(0)
        text = file.read()
    reports, kept = reports_of(text)
    with open(path, "w", encoding="utf-8", errors="replace") as file:
        file.write(kept)
    return code, text, reports


def run(options, kernel, number, tool):
    """A line: variant `number` of the kernel under a tool."""
    tunes, shapes = variants(kernel)[number]
    asked = problems(tunes, shapes)
    words, name = command(options, kernel, tunes, shapes)
    words += ["--wrap", f"{options.sanitizer} --tool {tool} --print-limit 100000 --show-backtrace device {options.more}".strip()]
    log = os.path.join(options.out, f"{tool}-{kernel['name'].replace('/', '-')}-{number}.txt")
    code, text, reports = logged(words, log, options.timeout + 10 * (asked + 1))
    said = counted(text)
    explained, uncovered = collections.Counter(), [None] * max((said or 0) - len(reports), 0)
    for report in reports:
        by = next((one for one in options.known if one.about(tool, kernel["name"]) and one.covers(report)), None)
        if by:
            explained[by] += 1
        else:
            uncovered.append(report)
    where = collections.Counter(place for report in reports for place in dict.fromkeys(access[0] for access in report.accesses))
    own = [] if shapes is SHAPES.get(kernel["op"]) else shapes
    line = {"op": kernel["op"], "kernel": kernel["name"], "code_hash": kernel["code_hash"], "variant": " ".join([*tunes, *own]),
            "tool": tool, "problems": max(asked - len(UNSUPPORTED.findall(text)), 0),
            "checked": checked(text, name, kernel.get("oracle")),
            "reports": None if said is None and not reports else max(said or 0, len(reports)),
            "where": "; ".join(f"{place} {n}x" for place, n in where.most_common(6)),
            "explained_by": "; ".join(one.row["proof"] or one.row["reason"] for one in explained),
            "sanitizer": options.sanitizer_version, "program": options.version}
    line["verdict"] = verdict(text, code, line, uncovered)
    return line, explained


def show(lines, tools):
    for tool in tools:
        counts = collections.Counter(line["verdict"] for line in lines if line["tool"] == tool)
        print(f"{tool}: " + ", ".join(f"{n} {word}" for word, n in counts.most_common()))
        for line in lines:
            if line["tool"] == tool and line["verdict"] != "clean":
                print(f"  {line['verdict']}: {line['kernel']} {line['variant']}: {line['checked']} of {line['problems']} checked, "
                      f"{line['reports']} reports; {line['where']}" +
                      (f"; explained by: {line['explained_by']}" if line["explained_by"] else ""))


def show_known(options, chosen):
    """Known reports that hold for nothing: their proof is missing, or no run made them."""
    for one in options.known:
        if one.row["tool"] not in options.tools or not any(one.about(one.row["tool"], kernel["name"]) for kernel in chosen):
            continue
        if one.unproven:
            print(f"unproven: {one.words()}: {one.unproven}; it explains nothing")
        elif not one.used:
            print(f"stale: {one.words()}: no run reports it any more")


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
    parser.add_argument("--jobs", type=int, default=min(8, os.cpu_count() or 1), help="more contexts starve each other")
    parser.add_argument("--kernels", default="*")
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--sanitizer", help=f"default: ${VARIABLE}, or the newest on this machine")
    parser.add_argument("--waits", help="waits.csv of the same tool and options")
    parser.add_argument("--more", default="", help="further options of the tools, as in '--check-tensor-ops yes'")
    parser.add_argument("--known", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "known_reports.csv"))
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
    options.sanitizer, version = find(options.sanitizer)
    options.sanitizer_version = f"{version} {options.more}".strip()
    try:
        options.known = known_reports.read(options.known)
        known_reports.prove(options.known, options.waits, options.sanitizer_version)
    except (OSError, ValueError, KeyError) as why:
        refuse(why)
    options.out = options.out or tempfile.mkdtemp(prefix="kbench-sanitizers-")
    os.makedirs(options.out, exist_ok=True)
    work = [(kernel, number, tool) for tool in options.tools for kernel in chosen for number in range(len(variants(kernel)))]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = list(pool.map(lambda one: run(options, *one), work))
    lines = [line for line, _ in runs]
    for _, explained in runs:
        for one, count in explained.items():
            one.used += count
    show(lines, options.tools)
    show_known(options, chosen)
    if options.csv:
        write(options.csv, lines)
    bad = [line for line in lines if line["verdict"] not in PASSES]
    if all(line["verdict"] in ("does not run", "unsupported") for line in lines):
        refuse(f"nothing ran under {options.sanitizer}; output in {options.out}")
    print(f"{len(lines)} runs, {len(bad)} failed; output in {options.out}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
