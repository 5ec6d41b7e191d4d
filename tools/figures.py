#!/usr/bin/env python3
"""Tables in Markdown files from committed rows, so that no figure stands in prose without its row.

A table stands between two markers, and is made anew from the words of the first:
    <!-- figures: results/h200/attention kernels=attn/simt,attn/mma across=batch:1,16,64,128 heads=64 ctx=128K -->
    <!-- end of figures -->
kernels: rows of the table, in order; across: a dimension and its values; the other words fix dimensions. A cell is the median in
us; `speedup=KERNEL` adds how many times that kernel's speed it is; `counter=l2_reread` shows that column of counters.csv instead,
and `beside=workspace_moved_B` another one, of bytes, in brackets as MB. A kernel that was run with several tunables is named with
those that tell its row: `attn/splitk:splits=1`.
Exit 2, and nothing is written, where a marker does not parse or stand in a pair, where a row is missing or doubled, or where the
run has a failed row of a kernel that the table shows.
Prose names a run as results/DEVICE/RUN, and others of the device in the same paragraph also as `RUN`. Where a run measured other
machine code than the program's, or a plug-in, the paragraph has to say so: "rows of earlier code `ID`" ("rows of code `ID`" where
only the plug-in is another code), ID as in the run's env.json, and for plug-ins also that word.
"""
import argparse
import csv
import json
import os
import re
import subprocess
import sys

BEGIN = re.compile(r"<!-- figures: (\S.*?) -->")   # a line of its own
LIKE_BEGIN, LIKE_END = re.compile(r"<!--\s*figures\b"), re.compile(r"<!--\s*end of figures\b")
END = "<!-- end of figures -->"
NAMED, BESIDE = re.compile(r"\bresults/[\w-]+/[\w-]+"), re.compile(r"`([\w-]+)[`/]")   # a run that prose names
SAID = re.compile(r"\brows\s+of\s+(earlier\s+)?code\s+`([^`]*)`")
PLUGIN_HASH = "so:"   # as in harness/plugin.h
ONCE_MORE, TO_CONFIRM = "measured again: the machine was not quiet", "measured again: a growth is to be confirmed"
BADNESS = {"contended": 8, "throttled": 4, "drifting": 2, "bimodal": 1}   # as harness/quiet.c weighs marks
NO_FAILURE = ("ok", "unsupported", "oom", "skipped")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def number(word):
    """8K is 8192; a label's value is a word."""
    if word[-1] in "KM" and word[:-1].isdigit():
        return int(word[:-1]) * {"K": 1 << 10, "M": 1 << 20}[word[-1]]
    return int(word) if word.isdigit() else word


def rows_of(run, name="rows.csv"):
    with open(os.path.join(ROOT, run, name), newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def is_of(row, kernel, dims):
    """kernel: as in a table, NAME or NAME:tunable=value;..."""
    name, _, tune = kernel.partition(":")
    return (row["kernel"] == name and set(filter(None, tune.split(";"))) <= set(row["tune"].split(";"))
            and all(row.get(n) == str(v) for n, v in dims.items()))


def counted(rows, kernel, dims, column):
    found = [r for r in rows if is_of(r, kernel, dims)]
    if len(found) != 1 or not found[0][column]:
        raise ValueError(f"{kernel} {dims}: {len(found)} rows of counters")
    return float(found[0][column])


def same_key(a, b):
    names = list(a)
    dims = names[names.index("marks") + 1:names.index("tune")]
    return all(a[name] == b[name] for name in ["op", "kernel", "tune", "cache", "seed", *dims])


def quieter(a, b):
    if a["status"] != "ok" or b["status"] != "ok":   # what fails at times fails
        return a["status"] not in NO_FAILURE and b["status"] in NO_FAILURE
    x, y = ((sum(BADNESS.get(mark, 0) for mark in r["marks"].split(";")),
             (float(r["t_hi_ns"]) - float(r["t_lo_ns"])) / float(r["t_med_ns"])) for r in (a, b))
    return x < y


def settled(rows):
    """Of rows measured again because the machine was not quiet, the quietest, in the first one's place. The rule is
    harness/again.c's; tests/golden/again.csv holds both to the same."""
    kept = []
    for row in rows:
        again = row["reason"].startswith(ONCE_MORE)
        twin = next((i for i in reversed(range(len(kept))) if again and same_key(kept[i], row)), None)
        if twin is None:
            kept.append(row)
        elif quieter(row, kept[twin]):
            kept[twin] = row
    return kept


def median_us(rows, kernel, dims):
    found = settled([r for r in rows if r["cache"] == "cold" and is_of(r, kernel, dims)])
    found = [r for r in found if not r["reason"].startswith(TO_CONFIRM)]   # a growth: the first one's time is the row's
    if len(found) != 1 or found[0]["status"] != "ok":
        raise ValueError(f"{kernel} {dims}: {len(found)} rows, {[r['status'] for r in found]}")
    return float(found[0]["t_med_ns"]) / 1e3, not found[0]["checked_pct"]   # and whether it is a probe, which is not ranked


def digits(value):
    return f"{value:.0f}" if value >= 100 or not value else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def parsed(words):
    """The run, and the other words by name."""
    run, *rest = words.split()
    options = {}
    for word in rest:
        name, equals, value = word.partition("=")
        if not equals or not value or name in options:
            raise ValueError(f"'{word}' is not NAME=VALUE, or a second {name}")
        options[name] = value
    return run, options


def failed(rows):
    return [row for row in rows if row["status"] not in NO_FAILURE]


def refuse_failed(run, kernels):
    names = [kernel.partition(":")[0] for kernel in kernels if kernel]
    bad = failed(row for row in rows_of(run) if row["kernel"] in names)
    if bad:
        raise ValueError(f"{len(bad)} rows of the run failed, first {bad[0]['kernel']}: {bad[0]['status']}")


def table(words):
    run, options = parsed(words)
    kernels = options.pop("kernels").split(",")
    speedup, counter, beside = (options.pop(name, None) for name in ("speedup", "counter", "beside"))
    if beside and not counter:
        raise ValueError(f"beside={beside} stands beside no counter")
    across, values = options.pop("across").split(":")
    if across in options:
        raise ValueError(f"{across} is both walked and fixed")
    refuse_failed(run, [*kernels, speedup])
    fixed = {name: number(value) for name, value in options.items()}
    rows = rows_of(run, "counters.csv" if counter else "rows.csv")
    values = values.split(",")
    heads = " | ".join(f"{across} {value}" for value in values)
    lines = [f"| {counter or 'us'} | {heads} |", "| --- |" + " ---: |" * len(values)]
    for kernel in kernels:
        cells = []
        for value in values:
            dims = {**fixed, across: number(value)}
            if counter:
                more = f" ({digits(counted(rows, kernel, dims, beside) / 1e6)} MB)" if beside else ""
                cells.append(digits(counted(rows, kernel, dims, counter)) + more)
                continue
            us, probe = median_us(rows, kernel, dims)
            times = f" ({median_us(rows, speedup, dims)[0] / us:.1f}x)" if speedup and kernel != speedup and not probe else ""
            cells.append(digits(us) + times)
        name, _, tune = kernel.partition(":")
        lines.append(f"| `{name}`{tune and f' {tune}'} | " + " | ".join(cells) + " |")
    return lines


class Refused(Exception):
    """One line: which file and marker, and why."""


def spelled(error):
    return f"no {error}" if isinstance(error, KeyError) else str(error)


def marker_of(line, where):
    """Words of the begin that a line is; END where it is that; None for any other line."""
    if line.strip() == END:
        return END
    begin = BEGIN.fullmatch(line.strip())
    if not begin and (LIKE_BEGIN.search(line) or LIKE_END.search(line)):
        raise Refused(f"{where}: {line.strip()}: a marker that does not parse; it is <!-- figures: RUN NAME=VALUE ... --> or "
                      f"{END}, a line of its own")
    return begin.group(1) if begin else None


def filled(text, path):
    """The text with every table made anew, and the runs that it quotes."""
    out, runs, begun = [], set(), None   # begun: where the table began that has not ended yet
    for number_of_line, line in enumerate(text.split("\n"), 1):
        where = f"{path}:{number_of_line}"
        marker = marker_of(line, where)
        if begun and marker not in (None, END):
            raise Refused(f"{where}: {line.strip()}: begins within the table of {begun}, which lacks {END}")
        if marker == END and not begun:
            raise Refused(f"{where}: {line.strip()}: no table has begun")
        if not begun:
            out.append(line)
        if marker == END:
            begun = None
        elif marker:
            begun = f"{where}: {line.strip()}"
            try:
                runs.add(parsed(marker)[0])
                out += ["", *table(marker), "", END]   # Markdown wants the blank lines
            except (ValueError, KeyError, IndexError, OSError, csv.Error) as error:
                raise Refused(f"{begun}: {spelled(error)}") from error
    if begun:
        raise Refused(f"{begun}: lacks {END}")
    return "\n".join(out), runs


def paragraphs(text):
    """Those of prose: without markers, since what tables quote is looked at as they are made."""
    prose = "\n".join(line for line in text.split("\n") if not BEGIN.search(line))
    return re.split(r"\n\s*\n", prose)


def named(paragraph):
    """Runs that a paragraph names, in full or beside one in full."""
    runs = set(NAMED.findall(paragraph))
    beside = {f"{os.path.dirname(run)}/{name}" for run in runs for name in BESIDE.findall(paragraph)}
    return sorted(runs | {run for run in beside if os.path.isdir(os.path.join(ROOT, run))})


def has_rows(run):
    return os.path.exists(os.path.join(ROOT, run, "rows.csv"))


def says(text, *words):
    """Whether a paragraph has all of the words."""
    return any(all(word in paragraph for word in words) for paragraph in paragraphs(text))


def doubtful(text):
    """Runs that prose names, which are not there or have failed rows that it keeps quiet about."""
    wrong = []
    for run in sorted({run for paragraph in paragraphs(text) for run in named(paragraph)}):
        if not os.path.isdir(os.path.join(ROOT, run)):
            wrong.append(f"{run}: named, and not there")
        elif has_rows(run):
            wrong += [f"{run}: named, and {row['kernel']} is {row['status']}, which the text doesn't say"
                      for row in failed(rows_of(run)) if not says(text, row["kernel"], row["status"])]
    return wrong


def listed_by(program):
    """What the program says of each run, by folder."""
    answer = subprocess.run([program, "list", "results", "--json"], capture_output=True, text=True, check=True,
                            env={**os.environ, "KBENCH_ROOT": ROOT}).stdout
    return {os.path.normpath(r["folder"]): r for r in json.loads(answer)["results"]}


def aged(listed, run):
    """How a run is not of the program's code; "": it is, or there is no telling."""
    found = next((r for path, r in listed.items() if path.endswith(os.path.normpath(run))), None)
    if not found:
        return "not among the runs that the program lists"
    return f"measured other machine code of {', '.join(found['other_code'])}" if found["evidence"] == "stale" else ""


def stale(listed, runs):
    """Runs whose rows tables quote as those of the code as it is."""
    return [f"{run}: {why}: measure it again" for run in runs if (why := aged(listed, run))]


def env_of(run):
    """The id of a run's code, and the plug-ins that it measured."""
    try:
        with open(os.path.join(ROOT, run, "env.json"), encoding="utf-8") as file:
            env = json.load(file)
    except FileNotFoundError:
        return "", []
    return env["kbench"], [name for name, code in env["kernels"].items() if str(code).startswith(PLUGIN_HASH)]


def of_other_code(listed, text):
    """Paragraphs that name rows of other code and don't say so, or name another code than the rows'."""
    wrong = []
    for paragraph in paragraphs(text):
        runs = [run for run in named(paragraph) if has_rows(run)]
        said = SAID.findall(paragraph)
        told, earlier = {code for _, code in said}, {code for before, code in said if before}
        codes = {run: env_of(run) for run in runs}
        for run, (code, plugins) in codes.items():
            why, word = aged(listed, run), "earlier "
            if not why and plugins:
                why, word = f"measured the plug-in {plugins[0]}", ""
            if why and code not in (earlier if word else told):
                wrong.append(f"{run}: {why}: measure it again, or say 'rows of {word}code `{code}`' where it is named")
            if plugins and "plug-in" not in paragraph:
                wrong.append(f"{run}: measured the plug-in {plugins[0]}, and the word doesn't stand where it is named")
        wrong += [f"rows of code `{code}`: of no run that the paragraph names ({' '.join(runs) or 'it names none'})"
                  for code in sorted(told - {code for code, _ in codes.values()})]
    return wrong


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("--check", action="store_true", help="fill nothing in; exit 1 where a table is not what its rows say")
    parser.add_argument("--program", metavar="KBENCH",
                        help="also exit 1 where a quoted run measured other machine code than that of this program, or a run that "
                             "prose names is not there, has failed rows that no paragraph names with kernel and status, or "
                             "has rows of other code or a plug-in and the paragraph doesn't say so")
    parser.add_argument("files", metavar="FILE.md", nargs="+", help="its tables are filled in, or checked")
    return parser.parse_intermixed_args()


def judge(given):
    """What is wrong, and how many runs are quoted; tables are filled in once all files are known to be in order."""
    wrong, runs, new = [], set(), {}
    listed = listed_by(given.program) if given.program else {}
    for path in given.files:
        with open(path, newline="", encoding="utf-8") as file:
            before = file.read()
        after, quoted = filled(before, path)
        runs |= quoted
        if after != before:
            new[path] = after
        if given.program:
            wrong += [f"{path}: {words}" for words in doubtful(before) + of_other_code(listed, before)]
    if given.program:
        wrong += stale(listed, sorted(runs))
    for path, after in new.items():
        if given.check:
            wrong.append(f"{path}: a table is not what its rows say; run tools/figures.py {path}")
            continue
        with open(path, "w", newline="", encoding="utf-8") as file:
            file.write(after)
    return wrong, len(runs)


def main():
    given = arguments()
    try:
        wrong, runs = judge(given)
    except Refused as why:
        print(why, file=sys.stderr)
        return 2
    except (OSError, ValueError, KeyError, csv.Error, subprocess.CalledProcessError) as error:
        print(f"figures.py: {spelled(error)}", file=sys.stderr)
        return 2
    print("\n".join(wrong) if wrong else f"{len(given.files)} files, {runs} runs quoted")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
