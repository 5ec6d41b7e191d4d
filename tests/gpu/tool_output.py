"""What NVIDIA's tools say of the program that runs behind them: its launches, and the ranges around each."""
import collections
import itertools
import math
import re

from sanitizer_tool import counted, reports_of, short

KERNELS = ["attn/mma", "attn/splitk"]                          # the first is what a filter is for
OWN = {"attn/mma": "attn_mma", "attn/splitk": "attn_splitk"}   # what their launches' names begin with
CYCLES, DURATION = "sm__cycles_elapsed.max", "gpu__time_duration.sum"
LONG_US = 10
PARTLY = "partly"   # what a verdict begins with that is no failure
RANGE = re.compile(r"attn/\w+ \w+=[^\0-\x1f\x7f-\xff<>\"]*", re.ASCII)
LAUNCH = re.compile(r"^  (\S.*?) \(\d+, \d+, \d+\)x\(\d+, \d+, \d+\), Context ")
DUMPED = re.compile(r"^=+ Launch #\d+(?:.*\(filtered: (.*)\))?")
MANGLED = re.compile(r"^_ZL?(\d+)")
PER_US = {"n": 1e-3, "u": 1, "m": 1e3, "s": 1e6}               # ns or nsecond

# One launch that a tool shows: its kernel, the ranges around it, MHz and us where they were counted; why it was left out, or None.
Launch = collections.namedtuple("Launch", "kernel ranges mhz us filtered")


def number(word):
    return float(word.replace(",", ""))


def size_of(word):
    """8K is 8192; a label's value is a word."""
    times = {"K": 1 << 10, "M": 1 << 20}.get(word[-1], 1)
    digits = word[:-1] if times > 1 else word
    return int(digits) * times if digits.isdigit() else word


def range_names(op, kernels, words):
    """Names of the ranges around the checks of these kernels, as harness/group.c makes them: the dimensions that are not the op's
    own, in its order, and all tunables. op, kernels: as the program lists them; words: its -a words of one value."""
    values = dict(word.split("=") for word in words)
    own = {dim["name"]: dim["default"] for dim in op["dims"]}
    dims = ",".join(f"{name}={values[name]}" for name in own if name in values and size_of(values[name]) != own[name])
    names = []
    for kernel in kernels:
        choices = [[f"{tunable['name']}={value}" for value in tunable["values"]] for tunable in kernel["tunables"]]
        names += [" ".join(filter(None, [kernel["name"], dims, ";".join(choice)])) for choice in itertools.product(*choices)]
    return names


def whole_names(data, names):
    """Those that stand whole in a recorder's file, which is packed: what follows a name may be any byte of the packing, also a
    letter, as what stands before it may be its length. Only what would make it a longer name does not count as its end."""
    return [name for name in names if re.search(re.escape(name.encode()) + rb"(?![0-9,; ])", data)]


def launches_of_ncu(text):
    """Those of its report, each with the stack of ranges that it prints and both metrics."""
    found = []
    for line in text.splitlines():
        begins, cells = LAUNCH.match(line), line.split()
        if begins:
            found.append({"kernel": short(begins.group(1)), "ranges": [], "cycles": math.nan, "us": math.nan})
        elif found and re.match(r"^ +<\d+,.*>$", line):
            found[-1]["ranges"].append(line.strip()[1:-1].partition(",")[2])
        elif found and len(cells) == 3 and cells[0] == CYCLES:
            found[-1]["cycles"] = number(cells[2])
        elif found and len(cells) == 3 and cells[0] == DURATION:
            found[-1]["us"] = number(cells[2]) * PER_US.get(cells[1][0], math.nan)
    return [Launch(one["kernel"], one["ranges"], one["cycles"] / one["us"] if one["us"] else math.nan, one["us"], None)
            for one in found]


def unmangled(name):
    """Of a symbol its function's own name, of all else nothing else than it is."""
    begins = MANGLED.match(name)
    return name[begins.end():][:int(begins.group(1))] if begins else name


def launches_of_sanitizer(text):
    """Those that --dump-kernel-launches tells, also of what a filter left out."""
    found, filtered = [], None
    for line in text.splitlines():
        begins, kernel = DUMPED.match(line), re.match(r"^=+ +Kernel: (.*)", line)
        if begins:
            filtered = begins.group(1) or ("" if "filtered" in line else None)
        elif kernel:
            found.append(Launch(unmangled(short(kernel.group(1))), [], math.nan, math.nan, filtered))
    return found


def reports_beside_launches(text, launches):
    """How many reports a sanitizer says there were; None: it says nothing. Newer versions count each launch that they tell, too."""
    said, told = counted(text), len(launches or [])
    printed = sum(not report.says.startswith("Launch #") for report in reports_of(text)[0])
    return said if said is None or said < told else max(said - told, printed)


def its_own(launch, kernel):
    return launch.kernel.startswith(OWN[kernel])


def clock(launches):
    """MHz over all long launches, nan where none was counted."""
    long = [one for one in launches if one.us >= LONG_US and not math.isnan(one.mhz)]
    return sum(one.mhz * one.us for one in long) / sum(one.us for one in long) if long else math.nan


def left_kernels(launches):
    return collections.Counter(one.kernel for one in launches if one.filtered is None)


def shown_by_nsys(names, ranges, are_all):
    """What is wrong with the ranges that it shows, or "". names: what there has to be, to the letter."""
    missing = [name for name in names if name not in ranges]
    if not missing:
        return ""
    if are_all:   # also where there is none
        return f"no range {missing[0]}"
    return f"{PARTLY}: {len(names) - len(missing)} of {len(names)} names whole in the recorder's file, the others packed"


def shown(tool, form, launches):
    """What is wrong with what ncu or a sanitizer shows, or "". launches None: this version does not tell them."""
    if launches is None:
        return ""
    left = [one for one in launches if one.filtered is None]
    wanted = KERNELS if form == "all" else KERNELS[:1]
    for kernel in wanted:
        own = [one for one in left if its_own(one, kernel)]
        if not own:
            return f"no launch of {kernel}"
        if tool == "ncu" and not all(any(name.startswith(kernel + " ") for name in one.ranges) for one in own):
            return f"a launch of {kernel} outside of its range"
    if tool == "ncu" and not all(any(RANGE.fullmatch(name) for name in one.ranges) for one in left):
        return "a launch without a range that names kernel and problem"
    return "" if form == "all" or only_its_range(tool, launches) else "the filter leaves launches of other ranges"


def only_its_range(tool, launches):
    """Whether what is left is of the filtered kernel: its launches, and the fills and hashes of its buffers."""
    left = [one for one in launches if one.filtered is None]
    foreign = any(one.kernel.startswith("attn_") and not its_own(one, KERNELS[0]) for one in left)
    names = {name for one in left for name in one.ranges}
    if tool == "ncu" and not (names and all(name.startswith(KERNELS[0] + " ") for name in names)):
        return False
    return bool(left) and not foreign
