"""Which of NVIDIA's sanitizers sees which missing wait?

usage: waits.py WAITS [--out DIR] [--csv FILE] [--jobs N] [--styles a,b] [--tools a,b] [--sanitizer PROGRAM] [--timeout SECONDS]
                [--limit SECONDS] [--more 'OPTIONS']
Runs every style of staging that WAITS (waits/waits.cu) knows, in its right form and with a wait missing, alone and under each tool
of compute-sanitizer, and writes a table, a line for each style and form, with the tool's version and what --more gives it. What a
tool says of a right form:
    clean, false alarm, does not run (the tool itself keeps the kernel from running)
and of a form that lacks a wait:
    seen            it reports something, and nothing of the right form
    not told apart  it reports both
    not covered     it reports nothing, so a clean run says nothing about this wait
    does not run
    not run         --limit was over
`alone` says whether the form's results were right without a tool: a fault that shows nothing is a fault all the same.
Exit 1 where a right form gives wrong results or hangs, 77 where there is no GPU or no compute-sanitizer.
"""
import argparse
import concurrent.futures
import csv
import io
import math
import os
import re
import subprocess
import sys
import tempfile
import time

from sanitizer_tool import SUMMARY, TOOLS, VARIABLE, find

OPTIONS = {"memcheck": ["--report-api-errors", "no"]}
BACKTRACE = ["--show-backtrace", "device"]   # a host's one for each of thousands of reports takes longer than the form
RESULTS = re.compile(r"^results: (right|wrong)", re.MULTILINE)


def log_of(options, line, tool):
    return os.path.join(options.out, f"{line['style']}-{line['form']}-{tool or 'alone'}.txt")


class Run:
    """One form under one tool, or alone (tool None): what its output says."""

    def __init__(self, options, line, tool):
        words = [options.waits, line["style"], line["form"]]
        if tool:
            words = [options.sanitizer, "--tool", tool, *BACKTRACE, *OPTIONS.get(tool, []), *options.more.split(), *words]
        self.text, self.code, self.hangs, self.results, self.reports = "", 0, False, "", None
        self.skipped = time.monotonic() > options.end
        if self.skipped:
            return
        try:
            done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=options.timeout, check=False)
            text, self.code, self.hangs = done.stdout.decode(errors="replace"), done.returncode, False
        except subprocess.TimeoutExpired as late:
            text, self.code, self.hangs = (late.stdout or b"").decode(errors="replace"), -1, True
        self.text = text
        found, summary = RESULTS.search(text), [int(n) for n in SUMMARY.findall(text)]
        self.results = found.group(1) if found else ""
        self.reports = max(summary) if summary else None
        with open(log_of(options, line, tool), "w", encoding="utf-8") as file:
            file.write(f"$ {' '.join(words)}\n{text}\nexit {self.code}{', timed out' if self.hangs else ''}\n")

    def alone(self):
        if self.skipped or self.hangs:
            return "not run" if self.skipped else "hangs"
        return "not for this GPU" if self.code == 77 else self.results or f"fails (exit {self.code})"

    def broken(self):
        """The tool says nothing about this form, since there was no run."""
        return self.reports is None or (not self.results and not self.reports)

    def verdict(self, right):
        """right: the run of the right form under the same tool, or None where this is it."""
        if self.skipped:
            return "not run"
        if self.code == 77:
            return "not for this GPU"
        if self.hangs:
            return "hangs"
        if self.broken():
            return "does not run"
        if right is None:
            return "false alarm" if self.reports else "clean"
        if not self.reports:
            return "not covered"
        if right.reports is None:
            return "seen, right form " + right.verdict(None)
        return "not told apart" if right.reports else "seen"


def styles(options):
    done = subprocess.run([options.waits], capture_output=True, text=True, check=True)
    lines = list(csv.DictReader(io.StringIO(done.stdout)))
    wanted = options.styles.split(",") if options.styles else [line["style"] for line in lines]
    unknown = set(wanted) - {line["style"] for line in lines}
    if unknown:
        sys.exit(f"no style {', '.join(sorted(unknown))}: {options.waits} lists them")
    return [line for line in lines if line["style"] in wanted]


def judge(lines, runs, tools):
    """Fills the lines' cells in; how many right forms are not."""
    wrong = 0
    for line in lines:
        key, is_right = (line["style"], line["form"]), line["form"] == "right"
        line["alone"] = runs[(*key, None)].alone()
        bad = line["alone"] not in ("right", "not for this GPU", "not run")
        for tool in tools:
            one, right = runs[(*key, tool)], None if is_right else runs[(line["style"], "right", tool)]
            line[tool] = one.verdict(right)
            line[f"{tool}_reports"] = "" if one.reports is None else one.reports
            bad = bad or one.hangs or one.results == "wrong"
        if is_right and bad:
            wrong += 1
            print(f"FAILED: {line['style']}: its right form hangs or has wrong results, alone or under a tool")
    return wrong


def show(lines, tools):
    columns = ["style", "form", "lacks", "alone", *tools]
    widths = [max(len(line[c]) for line in [dict(zip(columns, columns)), *lines]) for c in columns]
    for line in [dict(zip(columns, columns)), *lines]:
        print("  ".join(line[c].ljust(width) for c, width in zip(columns, widths)).rstrip())
    for line in lines:
        if line["note"]:
            print(f"{line['style']}, {line['form']}: {line['note']}")


def write(path, lines, tools):
    columns = ["style", "form", "handed_on", "lacks", "alone", *tools, *(f"{tool}_reports" for tool in tools), "note", "version"]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("waits")
    parser.add_argument("--out")
    parser.add_argument("--csv")
    parser.add_argument("--jobs", type=int, default=min(8, os.cpu_count() or 1), help="more contexts starve each other")
    parser.add_argument("--styles")
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--sanitizer", help=f"default: ${VARIABLE}, or the newest on this machine")
    parser.add_argument("--more", default="", help="further options of the tools, as in '--check-tensor-ops yes'")
    parser.add_argument("--timeout", type=float, default=40, help="of one run")
    parser.add_argument("--limit", type=float, default=math.inf, help="of all: what has not begun by then is left out")
    options = parser.parse_args()
    if options.jobs < 1 or set(options.tools.split(",")) - set(TOOLS):
        parser.error(f"--jobs is 1 or more, --tools some of {','.join(TOOLS)}")
    options.sanitizer, version = find(options.sanitizer)
    options.waits = os.path.abspath(options.waits)
    options.out = options.out or tempfile.mkdtemp(prefix="kbench-waits-")
    os.makedirs(options.out, exist_ok=True)
    options.end = time.monotonic() + options.limit
    began, lines, tools = time.monotonic(), styles(options), options.tools.split(",")
    for line in lines:
        line["version"] = f"{version} {options.more}".strip()

    first = Run(options, lines[0], None)
    if "waits: no device" in first.text:
        print(f"no GPU: {first.text.strip()}")
        sys.exit(77)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        coming = {(line["style"], line["form"], tool): pool.submit(Run, options, line, tool)
                  for tool in [None, *tools] for line in lines}
        runs = {key: run.result() for key, run in coming.items()}
    wrong = judge(lines, runs, tools)
    show(lines, tools)
    write(options.csv or os.path.join(options.out, "waits.csv"), lines, tools)
    print(f"{len(runs)} runs, {time.monotonic() - began:.0f} s, {wrong} right forms are not right; output in {options.out}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
