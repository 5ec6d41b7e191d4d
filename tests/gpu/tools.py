"""What do NVIDIA's tools show of the program behind --wrap?

usage: tools.py PROGRAM [--out DIR] [--csv FILE] [--tools ncu,memcheck,nsys] [--ncu PROGRAM] [--nsys PROGRAM]
                [--sanitizer PROGRAM] [--timeout SECONDS] [--limit SECONDS]
Checks two attention kernels (and the probe beside them) behind ncu, compute-sanitizer's memcheck and nsys: `all`, and `filtered`,
with an NVTX filter for one kernel's range, where the tool has one. Writes a table, a line for each tool and form. It is right where
    both kernels are checked and right, the program ends with 0, and memcheck reports nothing
    ncu and nsys show the ranges that name kernel and problem, nsys to the letter; ncu has the kernel's own launches in its range
    the filter leaves the kernel and no launch of another range
    clocks are untouched: nvidia-smi, where there is one, says the same of their setting before and after, and launches of 10 us
    and more ran under ncu at 0.97 of the clock that `doctor` saw, or faster
The verdict is ok, partly, not there (no such tool, or it has no such filter), not run (--limit was over), or what is wrong.
partly: nsys' recorder has no importer beside it, and only some ranges stand whole in its file, since it packs a name that is like
an earlier one. Exit 1 where something is wrong, 2 where nothing ran, 77 where there is no GPU.
"""
import argparse
import csv
import glob
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import sanitizer_tool
from sanitizers import checked
from tool_output import (CYCLES, DURATION, KERNELS, PARTLY, RANGE, clock, launches_of_ncu, launches_of_sanitizer, left_kernels,
                         only_its_range, range_names, reports_beside_launches, shown, shown_by_nsys, whole_names)

LARGE = ["heads=64", "batch=64", "ctx=128K"]
SMALL = ["heads=64", "batch=2", "ctx=512"]                     # a sanitizer slows kernels a hundredfold
FILTER = '--nvtx-include "regex:attn.mma .*/"'                 # the kernel KERNELS[0]
SLOWEST = 0.97
PLACES = {   # beside PATH; the last one of a folder's is the newest
    "ncu": ["/usr/local/cuda/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu"],
    "nsys": ["/usr/local/cuda/bin/nsys", "/opt/nvidia/nsight-systems/*/bin/nsys",
             "/opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys"],
}
SETTING = ["clocks.max.sm", "clocks.applications.graphics"]
STATE = ["clocks.sm", "clocks_event_reasons.active"]
COLUMNS = ["tool", "version", "form", "verdict", "exit", "checked", "launches", "filtered", "kernels", "ranges", "only_its_range",
           "kernel_MHz", "doctor_MHz", "before", "after", "seconds", "wrap", "program"]
OPTION = {"ncu": "ncu", "nsys": "nsys", "memcheck": "sanitizer"}   # which names the program


def refuse(words):
    print(f"tools.py: {words}", file=sys.stderr)
    sys.exit(2)


def output(words, timeout):
    """Exit status (None: not over in time) and output."""
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout, check=False)
        return done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as late:
        return None, (late.stdout or b"").decode(errors="replace")
    except OSError as why:
        return None, str(why)


def ranges_of_nsys(options, base):
    """Names that its file holds, and whether these are all: as its own report tells them, or those expected that stand whole in
    what a recorder without one has left, which packs a name that is like an earlier one."""
    for path in sorted(glob.glob(glob.escape(base) + ".*")):
        if path.endswith(".nsys-rep"):
            code, text = output([options.nsys, "stats", "--force-export", "true", "--report", "nvtx_sum", "--format", "csv", path],
                                options.timeout)
            if code == 0 and RANGE.search(text):
                return RANGE.findall(text), True
        with open(path, "rb") as file:
            found = whole_names(file.read(), options.names)
        if found:
            return found, False
    return [], True


def clocks(options):
    """What nvidia-smi says of setting and state; "" where it is not there."""
    smi = shutil.which("nvidia-smi")
    for setting in (SETTING, SETTING[:1]) if smi else ():
        code, text = output([smi, "-i", options.uuid, f"--query-gpu={','.join([*setting, *STATE])}", "--format=csv,noheader"], 20)
        if code == 0:
            return " ".join(f"{name}={value.strip()}" for name, value in zip([*setting, *STATE], text.strip().split(",")))
    return ""


def setting(words):
    return " ".join(word for word in re.split(r" (?=clocks)", words) if word.split("=")[0] in SETTING)


def touched(line, doctor_mhz):
    """How the clocks were, or ""."""
    if setting(line["before"]) != setting(line["after"]):
        return f"clocks were set: {setting(line['before'])}, then {setting(line['after'])}"
    if line["tool"] == "ncu" and not line["mhz"] >= SLOWEST * doctor_mhz:
        return f"launches at {line['mhz']:.0f} MHz, {doctor_mhz:.0f} without a tool"
    return ""


def verdict(options, line, text, launches, ranges, are_all):
    if line["exit"] is None:
        return "hangs"
    if line["exit"] or line["checked"] != len(KERNELS):
        return f"exit {line['exit']}, {line['checked']} of {len(KERNELS)} kernels right"
    reports = reports_beside_launches(text, launches) if line["tool"] == "memcheck" else 0
    if reports != 0:
        return "no summary" if reports is None else f"{reports} reports"
    wrong = (shown_by_nsys(options.names, ranges, are_all) if line["tool"] == "nsys"
             else shown(line["tool"], line["form"], launches))
    changed = touched(line, float(line["doctor_MHz"] or "nan"))
    return (changed if wrong.startswith(PARTLY) else "") or wrong or changed or "ok"


def wraps(options, tool, form):
    """The words of --wrap; None: the tool has no such filter. And whether it tells launches."""
    if tool == "ncu":
        words = f"{shlex.quote(options.ncu)} --clock-control none --nvtx --metrics {CYCLES},{DURATION}"
        return (words if form == "all" else f"{words} {FILTER}"), True
    if tool == "nsys":
        return (f"{shlex.quote(options.nsys)} profile --trace cuda,nvtx --force-overwrite true -o "
                f"{shlex.quote(os.path.join(options.out, 'nsys'))}" if form == "all" else None), False
    words, help_text = f"{shlex.quote(options.sanitizer)} --tool memcheck", output([options.sanitizer, "--help"], 20)[1]
    tells = "--dump-kernel-launches" in help_text
    words += " --nvtx yes" if "--nvtx " in help_text else ""
    words += " --dump-kernel-launches --show-backtrace no --print-limit 100000" if tells else ""
    if form != "all" and "--nvtx-include" not in help_text:
        return None, tells
    return (words if form == "all" else f"{words} {FILTER}"), tells


def run(options, tool, form):
    """A line of the table."""
    line = {"tool": tool, "version": options.versions[tool], "form": form, "program": options.version}
    wrap, tells = wraps(options, tool, form) if getattr(options, OPTION[tool]) else (None, False)
    if wrap is None or time.monotonic() > options.end:
        return {**line, "verdict": "not run" if wrap else "not there"}
    words = [options.program, "check", "--device", "cuda", "--no-lock", "-q", "-k", ",".join(KERNELS)]
    for dim in SMALL if tool == "memcheck" else LARGE:
        words += ["-a", dim]
    line.update(wrap=wrap, doctor_MHz=options.doctor_mhz, before=options.clocks)
    began = time.monotonic()
    line["exit"], text = output([*words, "--wrap", wrap], options.timeout)
    line.update(seconds=f"{time.monotonic() - began:.1f}")
    options.clocks = line["after"] = clocks(options)
    with open(os.path.join(options.out, f"{tool}-{form}.txt"), "w", encoding="utf-8") as file:
        file.write(f"$ {shlex.join([*words, '--wrap', wrap])}\n{text}\nexit {line['exit']}\n")
    launches = launches_of_ncu(text) if tool == "ncu" else launches_of_sanitizer(text) if tells else None
    ranges, are_all = ranges_of_nsys(options, os.path.join(options.out, "nsys")) if tool == "nsys" else (
        [name for one in launches or [] for name in one.ranges], True)
    line["checked"] = sum(min(checked(text, kernel, True), 1) for kernel in KERNELS)
    line["mhz"] = clock(launches or [])
    line["verdict"] = verdict(options, line, text, launches, ranges, are_all)
    line["kernel_MHz"] = "" if math.isnan(line["mhz"]) else f"{line['mhz']:.0f}"
    line["ranges"] = " | ".join(dict.fromkeys(ranges)) + ("" if are_all or len(ranges) == len(options.names) else
                                                          " | others are packed")
    if launches is not None:
        left = left_kernels(launches)
        line.update(launches=sum(left.values()), filtered=len(launches) - sum(left.values()),
                    kernels=" ".join(f"{kernel}:{count}" for kernel, count in left.items()))
        line["only_its_range"] = "" if form == "all" else "yes" if only_its_range(tool, launches) else "no"
    return line


def program_of(tool, named):
    """The path of what was named, or of the newest that is there; "" where none is."""
    if named:
        return shutil.which(named) or refuse(f"no program {named}: --{tool} names it")
    there = [path for place in PLACES[tool] for path in sorted(glob.glob(place)) if os.access(path, os.X_OK)]
    return shutil.which(tool) or (there[-1] if there else "")


def find_tools(options):
    options.versions = dict.fromkeys(OPTION, "")
    named = options.sanitizer or os.environ.get(sanitizer_tool.VARIABLE)
    if "memcheck" in options.tools and (named or sanitizer_tool.candidates()):
        options.sanitizer, options.versions["memcheck"] = sanitizer_tool.find(options.sanitizer)
    for tool in ("ncu", "nsys"):
        path = program_of(tool, getattr(options, tool)) if tool in options.tools else ""
        setattr(options, tool, path)
        if path:
            found = re.findall(r"[Vv]ersion (\S+)", output([path, "--version"], 20)[1])
            options.versions[tool] = found[-1] if found else "unknown"


def look_at_the_machine(options):
    """The clock that doctor sees, without any tool."""
    code, text = output([options.program, "doctor", "--device", "cuda", "--json", "--no-lock", "-q"], 60)
    if code == 5:
        print(f"no GPU: {text.strip()}")
        sys.exit(77)
    try:
        device = json.JSONDecoder().raw_decode(text, text.index("{"))[0]["device"]
        options.uuid, options.doctor_mhz = device["uuid"], device["sm_clock_MHz"] or ""
        options.version = output([options.program, "--version"], 20)[1].split()[-1]
    except (ValueError, KeyError, IndexError) as why:
        refuse(f"{options.program} doctor --json: exit {code}, {why}: {' '.join(text.split())[:200]}")
    options.clocks = clocks(options)


def find_names(options):
    """What the ranges of the large problem are called."""
    try:
        ops, kernels = (json.loads(output([options.program, "list", what, "--json"], 20)[1])[what] for what in ("ops", "kernels"))
        options.names = range_names(next(op for op in ops if op["name"] == KERNELS[0].partition("/")[0]),
                                    [kernel for kernel in kernels if kernel["name"] in KERNELS], LARGE)
    except (ValueError, KeyError, StopIteration) as why:
        refuse(f"{options.program} list --json: {why!r}")


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("program")
    parser.add_argument("--out")
    parser.add_argument("--csv")
    parser.add_argument("--tools", default=",".join(OPTION))
    parser.add_argument("--ncu")
    parser.add_argument("--nsys")
    parser.add_argument("--sanitizer", help=f"default: ${sanitizer_tool.VARIABLE}, or the newest on this machine")
    parser.add_argument("--timeout", type=float, default=60, help="of one run")
    parser.add_argument("--limit", type=float, default=math.inf, help="of all: what has not begun by then is left out")
    options = parser.parse_args()
    options.tools = options.tools.split(",")
    if set(options.tools) - set(OPTION):
        parser.error(f"--tools is some of {','.join(OPTION)}")
    options.program = shutil.which(options.program) or refuse(f"no program {options.program}")
    options.out = os.path.abspath(options.out or tempfile.mkdtemp(prefix="kbench-tools-"))
    os.makedirs(options.out, exist_ok=True)
    began, options.end = time.monotonic(), time.monotonic() + options.limit
    look_at_the_machine(options)
    find_names(options)
    find_tools(options)
    lines = [run(options, tool, form) for tool in options.tools for form in (["all"] if tool == "nsys" else ["all", "filtered"])]
    with open(options.csv or os.path.join(options.out, "tools.csv"), "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(lines)
    broken = [line for line in lines if line["verdict"] not in ("ok", "not there", "not run")
              and not line["verdict"].startswith(PARTLY)]
    for line in lines:
        tool = f"{line['tool']} {line['version']}".strip()
        print(f"{'FAILED: ' if line in broken else ''}{tool}, {line['form']}: {line['verdict']}")
    print(f"{len(lines)} lines, {time.monotonic() - began:.0f} s, {len(broken)} are not right; output in {options.out}")
    if not any("exit" in line for line in lines):
        refuse("nothing ran")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
