"""Reports of a sanitizer that are known and explained: known_reports.csv.

A line covers reports of one tool on kernels that match `kernel` (a glob), whose first line contains `says`, and of which each
access has a place ('function file:line', its own or one it is inlined in) that `place` (a regular expression) finds. `proof` is
STYLE/right: that right form of waits.py the same version of the tool must have reported in the waits.csv given, or the line covers
nothing. Without a proof the reason says why no form can be planted.
"""
import csv
import fnmatch
import re

from sanitizer_tool import TOOLS

COLUMNS = ["tool", "kernel", "says", "place", "proof", "reason"]


class Known:
    def __init__(self, row):
        self.row, self.used, self.unproven = row, 0, ""
        self.place = re.compile(row["place"])

    def about(self, tool, kernel):
        return self.row["tool"] == tool and fnmatch.fnmatch(kernel, self.row["kernel"])

    def covers(self, report):
        return (not self.unproven and self.row["says"] in report.says and report.accesses != () and
                all(any(self.place.search(place) for place in access) for access in report.accesses))

    def words(self):
        row = self.row
        return f"{row['tool']}, {row['kernel']}, {row['place']}"


def fault(row):
    """What is wrong with a line, or ''."""
    if list(row) != COLUMNS or None in row.values():
        return f"columns are {','.join(COLUMNS)}"
    if row["tool"] not in TOOLS or not row["kernel"] or not row["says"] or not row["place"] or not row["reason"]:
        return f"tool is one of {','.join(TOOLS)}; kernel, says, place and reason are not empty"
    if row["proof"] and not re.fullmatch(r"\w+/right", row["proof"]):
        return f"proof '{row['proof']}' is not STYLE/right"
    try:
        matches_all = re.compile(row["place"]).search("")
    except re.error as why:
        return f"place: {why}"
    return "place matches everything" if matches_all else ""


def read(path):
    """The known reports of a file. Raises ValueError with the words to say."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for number, row in enumerate(rows, 2):
        if fault(row):
            raise ValueError(f"{path}: line {number}: {fault(row)}")
    return [Known(row) for row in rows]


def prove(known, waits, version):
    """Holds proofs against a waits.csv (None: there is none)."""
    rows = {}
    if waits:
        with open(waits, newline="", encoding="utf-8") as file:
            rows = {row["style"]: row for row in csv.DictReader(file) if row["form"] == "right"}
    for one in known:
        style, tool = one.row["proof"].split("/")[0], one.row["tool"]
        if not style:
            continue
        if not waits:
            one.unproven = "no waits.csv was given"
        elif style not in rows:
            one.unproven = f"{waits} has no {style}/right"
        elif rows[style].get("version") != version:
            one.unproven = f"{waits} is of version {rows[style].get('version')} of the tool"
        elif rows[style].get(tool) != "false alarm":
            one.unproven = f"{tool} says of {style}/right: {rows[style].get(tool)}"
