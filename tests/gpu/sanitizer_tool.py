"""compute-sanitizer: which one to run, and what its reports name."""
import collections
import glob
import os
import re
import shutil
import subprocess
import sys

TOOLS = ["memcheck", "racecheck", "initcheck", "synccheck"]
VARIABLE = "COMPUTE_SANITIZER"
PACKAGE = "nvidia-cuda-sanitizer-api"   # a wheel, newer than most toolkits' own
PLACES = ["/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer", "/opt/cuda/extras/compute-sanitizer"]
SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:error|hazard)")
ACCESS = re.compile(r"^=========(?: .* access|    ) at (.+)\+0x[0-9a-f]+(?: in (\S+:\d+))?(?: \[.*\])?$")
FRAME = re.compile(r"^========= +Device Frame: ?(.*?)(?:\+0x[0-9a-f]+)?(?: in (\S+:\d+))?$")
NO_REPORT = re.compile(r"^========= (?:COMPUTE-SANITIZER|.* SUMMARY: |Target application returned an error)")
ALIKE = 3   # reports that name the same places, which a shortened log keeps


def version(program):
    """As numbers, () where it says none."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, errors="replace", timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    found = re.search(r"\bVersion (\d+(?:\.\d+)+)", done.stdout)
    return tuple(int(part) for part in found.group(1).split(".")) if found else ()


def candidates():
    """Those of this machine: on PATH, of a toolkit, of a wheel in a folder where this python looks for its packages."""
    of_path = [shutil.which("compute-sanitizer"), shutil.which("compute-sanitizer", path=os.pathsep.join(PLACES))]
    wheels = [path for folder in sys.path if folder
              for path in sorted(glob.glob(os.path.join(glob.escape(folder), "nvidia/cu*/compute-sanitizer/compute-sanitizer")))]
    return [path for path in [*of_path, *wheels] if path and os.access(path, os.X_OK)]


def find(named=None):
    """Path and version ('2026.4.0.0', or 'unknown') of what was named, or of the newest; says which. Exit 2: what was named is not
    there, 77: there is none."""
    named = named or os.environ.get(VARIABLE)
    if named:
        paths = [shutil.which(named)]
        if not paths[0]:
            print(f"{os.path.basename(sys.argv[0])}: no program {named}: --sanitizer or {VARIABLE} names it", file=sys.stderr)
            sys.exit(2)
    else:
        paths = candidates()
    if not paths:
        print(f"no compute-sanitizer here: pip install {PACKAGE}, or a CUDA toolkit has it; --sanitizer or {VARIABLE} names it")
        sys.exit(77)
    numbers, best = max(((version(path), -i) for i, path in enumerate(paths)))
    words = ".".join(map(str, numbers)) or "unknown"
    print(f"compute-sanitizer {words}: {paths[-best]}" + (f", the newest of {len(paths)}" if len(paths) > 1 else ""), flush=True)
    return paths[-best], words


def short(function):
    """The name of a function without its return type, template arguments and parameters."""
    function = function.replace("(anonymous namespace)::", "")
    before = None
    while before != function:
        before, function = function, re.sub(r"<[^<>]*>", "", function)
    return (function.split("(")[0].split() or [""])[-1]


def place(match):
    return f"{short(match.group(1))} {match.group(2) or ''}".rstrip()


# says: its first line without places; accesses: for each that it names the places, innermost first, as 'function file:line'
Report = collections.namedtuple("Report", "says accesses")


def reports_of(text):
    """All reports of an output, and the output with no more than some of those that are alike."""
    reports, kept, block, seen = [], [], None, collections.Counter()

    def end():
        nonlocal block
        if block is not None:
            report = Report(re.sub(r" between \w+ access at .*", "", block[0][10:]), tuple(dict.fromkeys(map(tuple, accesses))))
            reports.append(report)
            seen[report] += 1
            if seen[report] <= ALIKE:
                kept.extend(block)
        block = None

    for line in text.splitlines():
        begins = line.startswith("========= ") and line[10:11].strip() and not NO_REPORT.match(line)
        if begins or not line.startswith("=========     "):
            end()
        if begins:
            block, accesses = [], []
        if block is None:
            if line.strip("= ") or not kept or kept[-1] != line:   # the empty line behind a report, once
                kept.append(line)
            continue
        block.append(line)
        access, frame = ACCESS.match(line), FRAME.match(line)
        if access:
            accesses.append([place(access)])
        elif frame and accesses:
            accesses[-1].append(place(frame))
    end()
    left_out = sum(count - ALIKE for count in seen.values() if count > ALIKE)
    if left_out:
        kept.append(f"({left_out} reports that name the same places as {ALIKE} before are left out)")
    return reports, "\n".join(kept) + "\n"


def counted(text):
    """How many reports the tool says there were, printed or not, of all processes; None: it says nothing."""
    said = [int(n) for line in text.splitlines() if "not printed" not in line for n in SUMMARY.findall(line)]
    return sum(said) if said else None
