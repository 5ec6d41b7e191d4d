"""Other work on the machine is seen in the rows it strikes, which are measured again and kept; runs on one device queue.

usage: test_quiet.py PROGRAM SOURCE [TEST...]
"""
import csv
import json
import os
import resource
import subprocess
import sys

from common import (INTERRUPT, ONCE_MORE, SMALL, SOURCE, Skip, environment, expect, expect_exit, kbench, main, read_rows, start,
                    wait_for)

ROW = [*SMALL, "-k", "attn/host_mma", "-a", "batch=2", "--no-plots"]

# Rounds over more than a time slice, however short a busy machine makes the samples.
LONG = [*SMALL, "-k", "attn/host_mma", "-a", "batch=128", "--no-plots", "--rounds", "40"]


class Neighbours:
    """A busy loop on every CPU that is ours."""

    def __enter__(self):
        loop = "import os\nos.sched_setaffinity(0, {{{cpu}}})\nprint(flush=True)\nwhile True: pass"
        self.all = [subprocess.Popen([sys.executable, "-c", loop.format(cpu=cpu)], stdout=subprocess.PIPE)
                    for cpu in os.sched_getaffinity(0)]
        for one in self.all:
            one.stdout.readline()
        return self

    def __exit__(self, *why):
        for one in self.all:
            one.kill()
            one.wait()


def counts_waiting():
    """Skips where the kernel does not count what threads wait for."""
    try:
        with open("/proc/self/schedstat", encoding="ascii") as file:
            if int(file.read().split()[1]) > 0:
                return
    except (OSError, IndexError, ValueError):
        pass
    raise Skip("no /proc/self/schedstat here")


def marked(rows):
    return [row for row in rows if "contended" in row["marks"].split(";")]


def busy_s():
    """CPU time that all of the machine was busy."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, soft, steal = (int(word) for word in file.readline().split()[1:9])
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")


def timed_s(run):
    """From the first sample of a run to its last."""
    with open(os.path.join(run, "samples.csv"), newline="", encoding="utf-8") as file:
        at = [float(row["at_s"]) for row in csv.DictReader(file)]
    return at[-1] - at[0]


def neighbours_are_seen(folder):
    counts_waiting()
    run = os.path.join(folder, "run")
    with Neighbours():
        done = kbench("sweep", *LONG, "--out", run)
    expect_exit(done, 0)
    rows = read_rows(run)
    expect(len(marked(rows)) == len(rows) == 1, f"{rows}", done)
    expect("other work: threads waited for a CPU" in rows[0]["reason"], rows[0]["reason"])
    with open(os.path.join(run, "samples.csv"), newline="", encoding="utf-8") as file:
        waited = [float(row["waited_pct"]) for row in csv.DictReader(file)]
    expect(len(waited) == 40 and sum(waited) / 40 > 10, f"half of the time belongs to the neighbours: {waited}")
    expect_exit(kbench("report", run, "--strict"), 4)


def quiet_is_left_alone(folder):
    counts_waiting()
    for turn in range(6):
        run = os.path.join(folder, f"run{turn}")
        before, own = busy_s(), resource.getrusage(resource.RUSAGE_CHILDREN)
        done = kbench("sweep", *LONG, "--out", run)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        expect_exit(done, 0)
        others = busy_s() - before - (after.ru_utime + after.ru_stime - own.ru_utime - own.ru_stime)
        share = others / timed_s(run) / os.cpu_count()   # what is marked is a part of that time, and not of all of the run
        if not marked(read_rows(run)):
            return
        expect(share > 0.02, f"others had {100 * share:.1f} % of the CPUs: that is quiet", done)
    raise Skip(f"the machine was never quiet: others had {100 * share:.0f} % of the CPUs")


def marked_rows_are_measured_again(folder):
    counts_waiting()
    run = os.path.join(folder, "run")
    with Neighbours():
        done = kbench("sweep", *ROW, "--max-time", "200ms", "--out", run)
    expect_exit(done, 0)
    rows = read_rows(run, every=True)
    again = [row for row in rows if row["reason"].startswith(ONCE_MORE)]
    expect(len(rows) == 3 and len(again) == 2 and len(marked(rows)) == 3, "the row and two more tries stand there", done)
    with open(os.path.join(run, "samples.csv"), newline="", encoding="utf-8") as file:
        samples = list(csv.DictReader(file))
    expect(len(samples) == sum(int(row["rounds"]) for row in rows), "so do all samples")
    report = kbench("report", run)
    for page in done, report:
        expect(page.stdout.count("\n  attn/host_mma") == 1 and "2 measured again" in page.stdout, "one of them is shown", page)
    expect_exit(kbench("sweep", "--resume", run), 0)
    expect(len(read_rows(run, every=True)) == 3, "nothing is left to do for --resume")


def counters_are_of_the_row_that_stays(folder):
    """Where a further try is taken for the row, counters.csv and what is derived there follow its time."""
    counts_waiting()
    sys.path.insert(0, os.path.join(SOURCE, "tools"))
    import figures
    for turn in range(8):
        run = os.path.join(folder, f"run{turn}")
        with Neighbours():
            done = kbench("profile", *SMALL, "-a", "batch=4,8", "-k", "attn/host_mma,attn/host_splitk", "--no-plots",
                          "--max-time", "200ms", "--out", run)
        expect_exit(done, 0)
        rows = read_rows(run, every=True)
        stay = figures.settled(rows)
        with open(os.path.join(run, "counters.csv"), newline="", encoding="utf-8") as file:
            text = file.read()
        counters = list(csv.DictReader(text.splitlines(True), strict=True))
        expect("\0" not in text and text.endswith("\n") and text.startswith("op,"), "no text file", done)
        with open(os.path.join(run, "env.json"), encoding="utf-8") as file:
            matrix = json.load(file)["ceilings"]["matrix_GFLOPs"]
        expect([line["kernel"] for line in counters] == [row["kernel"] for row in stay], "other lines than rows", done)
        for row, line in zip(stay, counters):
            expect(line["t_med_ns"] == row["t_med_ns"], f"{line['t_med_ns']} ns of a row of {row['t_med_ns']}", done)
            pct = 100 * float(line["flop"]) / float(line["t_med_ns"]) / matrix
            expect(abs(float(line["pct_matrix_ceiling"]) / pct - 1) < 1e-6, f"{line['pct_matrix_ceiling']} % is not {pct} %")
        if any(row["reason"].startswith(ONCE_MORE) for row in stay):
            return
    raise Skip("the first try was always the quietest")


def runs_queue(folder):
    env = environment(KBENCH_NO_LOCK=None)
    long = ["sweep", *ROW, "--rounds", "100000", "--timeout", "100"]
    first = start(*long, "--out", os.path.join(folder, "first"), env=env)
    try:
        expect(wait_for(lambda: os.path.exists(os.path.join(folder, "first", "rows.csv")), 100), "the first one begins")
        second = start("sweep", *ROW, "--rounds", "3", "--out", os.path.join(folder, "second"), env=env)
        line = second.stderr.readline()
        expect("another run is on it" in line and f"pid {first.pid}, kbench sweep" in line, line)
        second.send_signal(INTERRUPT)
        second.communicate(timeout=30)
        expect(second.returncode == 130, f"Ctrl-C ends the waiting: {second.returncode}")
        expect(not os.path.exists(os.path.join(folder, "second")), "nothing was begun")
        beside = kbench("sweep", *ROW, "--rounds", "3", "--no-lock", "--out", os.path.join(folder, "beside"), env=env)
        expect_exit(beside, 0)
        expect("another run" not in beside.stderr, "--no-lock does not wait", beside)
        expect_exit(kbench("check", *ROW[:-1], env=env), 0)   # nor does a check on a CPU
        third = start("sweep", *ROW, "--rounds", "3", "--out", os.path.join(folder, "third"), env=env)
        expect("another run is on it" in third.stderr.readline(), "it waits")
    finally:
        first.kill()
        first.communicate()
    third.communicate(timeout=60)
    expect(third.returncode == 0, "a killed run lets the next one go")


main(neighbours_are_seen, quiet_is_left_alone, marked_rows_are_measured_again, counters_are_of_the_row_that_stays, runs_queue)
