#!/usr/bin/env python3
"""Runs the tests of a plain and of a sanitized build, and ends with the line 'N passed, N failed'.

usage: run_tests.py BUILD SANITIZED_BUILD [SUITE...]

A failed test's output is shown by meson as it fails; a skipped one (exit 77) says why in its last line. Of passed ones, lines that
begin with 'reported:' are shown.
"""
import json
import os
import subprocess
import sys

SUITES = ["unit", "style", "harness", "runs", "setup", "fuzz", "gpu"]
SANITIZED = ["unit", "harness", "fuzz"]    # the others say nothing new there; the fuzzers are built there alone

# Suppressed: what the process still holds at its end. Everything else that the sanitizers find is an error.
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0:handle_abort=0",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
}


def run(build, suites, title, environment, patience):
    """Runs the suites of one build; returns the parsed log, one dict a test."""
    print(f"== {title}: {', '.join(suites)}", flush=True)
    log = os.path.join(build, "meson-logs", "testlog.json")
    if os.path.exists(log):
        os.unlink(log)
    command = ["meson", "test", "-C", build, "--no-rebuild", "--print-errorlogs", "-t", str(patience)]
    for suite in suites:
        command += ["--suite", suite]
    process = subprocess.run(command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, check=False)
    if not os.path.exists(log):
        return [{"name": f"{title}: meson test", "result": "ERROR" if process.returncode else "SKIP", "stdout": "no tests"}]
    with open(log, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def main():
    plain, sanitized, wanted = sys.argv[1], sys.argv[2], sys.argv[3:] or SUITES
    unknown = [suite for suite in wanted if suite not in SUITES]
    if unknown:
        sys.exit(f"test: no suite '{unknown[0]}'; there are {', '.join(SUITES)}")
    once = [suite for suite in wanted if suite != "fuzz"]
    tests = run(plain, once, "tests", {}, 1) if once else []
    again = [suite for suite in wanted if suite in SANITIZED]
    if again:
        tests += run(sanitized, again, "with sanitizers", SANITIZER_OPTIONS, 2)

    passed = [test for test in tests if test["result"] in ("OK", "EXPECTEDFAIL")]
    skipped = [test for test in tests if test["result"] == "SKIP"]
    failed = [test for test in tests if test not in passed and test not in skipped]
    print()
    for test in skipped:
        words = (test.get("stdout") or test.get("stderr") or "no reason given").strip().splitlines()
        print(f"skipped: {test['name']}: {words[-1] if words else 'no reason given'}")
    for test in passed:                        # a test may pass and still have something to say
        for line in (test.get("stdout") or "").splitlines():
            if line.startswith("reported: "):
                print(line)
    for test in failed:
        print(f"failed: {test['name']} ({test['result'].lower()})")
    print(f"{len(passed)} passed, {len(failed)} failed" + (f", {len(skipped)} skipped" if skipped else ""))
    sys.exit(1 if failed or not passed else 0)


main()
