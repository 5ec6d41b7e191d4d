"""What the end-to-end tests share. Each file of them is run as: test_<topic>.py PROGRAM SOURCE [TEST...]"""
import csv
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback

PROGRAM, SOURCE = (os.path.abspath(word) for word in sys.argv[1:3])

# A problem of a few microseconds, and what keeps its timing short.
SHAPE = ["--device", "host", "-a", "heads=8", "-a", "ctx=256", "-a", "window=16"]
SMALL = SHAPE + ["-a", "topk=32"]
TINY = SMALL + ["-a", "batch=1,2"]
QUICK = ["--rounds", "4", "--cache", "hot", "--no-plots"]


class Skip(Exception):
    """Raised with the reason why this machine can't run a test."""


def environment(**more):
    """The caller's, without anything that would set options; None takes a name away."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("KBENCH_")}
    env["KBENCH_ROOT"] = SOURCE
    env["NO_COLOR"] = "1"
    env["KBENCH_NO_LOCK"] = "1"   # tests run side by side
    for name, value in more.items():
        env.pop(name, None)
        if value is not None:
            env[name] = value
    return env


def kbench(*words, env=None, timeout=120, cwd=None, before=()):
    """Runs the program to its end; `before`: words before it on the command line."""
    return subprocess.run([*before, PROGRAM, *words], env=env or environment(), capture_output=True, text=True, timeout=timeout,
                          cwd=cwd, stdin=subprocess.DEVNULL, check=False)


def start(*words, env=None, cwd=None, **more):
    return subprocess.Popen([PROGRAM, *words], env=env or environment(), cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **more)


def expect(condition, words, done=None):
    if not condition:
        said = f"\nexit {done.returncode}\n--- stdout\n{done.stdout}--- stderr\n{done.stderr}" if done else ""
        raise AssertionError(words + said)


def expect_exit(done, code):
    expect(done.returncode == code, f"wanted exit {code}", done)


ONCE_MORE = "measured again: the machine was not quiet"


def read_rows(folder, every=False):
    """The rows of a run. Strict: the last line is whole, every line has as many cells as the header. Without those that a busy
    machine made it measure again, unless every one is wanted."""
    with open(os.path.join(folder, "rows.csv"), newline="", encoding="utf-8") as file:
        text = file.read()
    expect(text.endswith("\n"), f"{folder}/rows.csv: its last line is cut short")
    lines = list(csv.reader(text.splitlines(True), strict=True))
    expect(all(len(line) == len(lines[0]) for line in lines), f"{folder}/rows.csv: lines of different lengths")
    rows = [dict(zip(lines[0], line)) for line in lines[1:]]
    return [row for row in rows if every or not row["reason"].startswith(ONCE_MORE)]


def identity(row):
    """What makes a row that row, whatever was measured."""
    names = list(row)
    dims = names[names.index("marks") + 1:names.index("tune")]
    return (row["op"], row["kernel"], row["engine"], row["cache"], row["tune"], row["seed"], *(row[dim] for dim in dims))


def children(pid):
    """Processes whose parent is pid."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                if int(file.read().rpartition(")")[2].split()[1]) == pid:
                    found.append(int(name))
        except (OSError, IndexError):
            pass
    return found


def kill(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def wait_for(condition, timeout=60):
    until = time.monotonic() + timeout
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.01)
    return False


def in_own_mounts(script, *words, env=None):
    """Runs a shell script that may mount things for itself; skips where that is not allowed."""
    if subprocess.run(["unshare", "-m", "sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True, check=False).returncode:
        raise Skip("no mounts of one's own here (unshare -m, mount)")
    return subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", *words], env=env or environment(), capture_output=True,
                          text=True, timeout=120, stdin=subprocess.DEVNULL, check=False)


def main(*tests):
    """Runs the tests named on the command line, or all; each gets a new folder. Exit 1: one failed; 77: all were skipped."""
    wanted = sys.argv[3:] or [test.__name__ for test in tests]
    failed = skipped = 0
    for test in tests:
        if test.__name__ not in wanted:
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="kbench-test-") as folder:
            try:
                test(folder)
                word = "ok"
            except Skip as why:
                word, skipped = f"skipped: {why}", skipped + 1
            except (AssertionError, subprocess.TimeoutExpired, OSError, KeyError, ValueError, csv.Error):
                word, failed = f"FAILED\n{traceback.format_exc()}", failed + 1
        print(f"{test.__name__}: {word} ({time.monotonic() - began:.1f} s)", flush=True)
    sys.exit(1 if failed else 77 if skipped == len(wanted) else 0)


INTERRUPT = signal.SIGINT
