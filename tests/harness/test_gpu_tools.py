#!/usr/bin/env python3
"""The programs of tests/gpu and tools that judge what was seen on a GPU, with stand-ins for what they run and read.

usage: test_gpu_tools.py PROGRAM SOURCE [TEST...]
"""
import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import time

from common import SOURCE, environment, expect, expect_exit, kbench, main

sys.path.insert(0, os.path.join(SOURCE, "tests", "gpu"))
import known as known_reports  # noqa: E402  (its path has to be known first)
import neighbours as tested_neighbours  # noqa: E402
import sanitizer_tool as tool_of  # noqa: E402
import sanitizers as tested  # noqa: E402
import tool_output  # noqa: E402
import tools as tested_tools  # noqa: E402

# Styles a..e, forms right and early; results of a form: the variable <style>_<form>, where it isn't 'right'.
WAITS = """#!/bin/sh
if [ $# = 0 ]; then
    echo style,form,handed_on,lacks,note
    for style in a b c d e; do echo "$style,right,words,,"; echo "$style,early,\\"words, more\\",a wait,"; done
    exit 0
fi
eval "results=\\${$1_$2:-right}"
case $results in
hang) exec sleep 30 ;;
dead) echo 'waits: kernel: too many resources' >&2; exit 5 ;;
bare) echo 'waits: no device: none' >&2; exit 5 ;;
*) echo "results: $results" ;;
esac
"""

# Reports <tool>_<style>_<form> errors, 0 where nothing is said; 'dies': the kernel doesn't run.
SANITIZER = """#!/bin/sh
tool=$2
shift 2
[ "$1 $2" = "--show-backtrace device" ] || exit 9; shift 2
[ "$1" != --report-api-errors ] || shift 2
[ "$1" != --a-check ] || shift 2
eval "reports=\\${${tool}_$2_$3:-0}"
if [ "$reports" = dies ]; then echo '========= ERROR SUMMARY: 0 errors'; exit 1; fi
"$@"
code=$?
if [ $tool = racecheck ]; then echo "========= RACECHECK SUMMARY: $reports hazards displayed ($reports errors, 0 warnings)"
else echo "========= ERROR SUMMARY: $reports errors"; fi
exit $code
"""

# A run whose rows are marked where the folder's name says so, and a neighbour that is ready at once.
SWEEP = """#!/usr/bin/env python3
import os, sys
out = sys.argv[sys.argv.index("--out") + 1]
os.makedirs(out)
marks = "contended" if os.path.basename(out).split("-")[0] in os.environ["MARKED"].split(",") else ""
with open(out + "/rows.csv", "w") as file:
    file.write(f'kernel,marks,reason\\nattn/mma,{marks},"so, and so"\\nattn/splitk,,\\n')
with open(out + "/env.json", "w") as file:
    file.write('{"kbench": "c0de"}')
with open(out + "/samples.csv", "w") as file:
    file.write("at_s,canary_ns,wait_ns\\n" + "".join(f"{i / 1e3},{3000 + i},\\n" for i in range(101)))
"""
NEIGHBOUR = "#!/bin/sh\necho ready\nexec sleep 20\n"


# A program with the kernels named in $kernels; `check` runs what --wrap says, which reports what <tool>_<end of the kernel's name>
# holds. Each problem has a row of the kernel and one of a probe.
CHECK = """#!/bin/sh
if [ $1 = --version ]; then echo 'kbench c0de'; exit 0; fi
if [ $1 = list ]; then
    echo '{"kernels": ['
    for k in ${kernels:-a b c}; do
        oracle=false; [ $k != oracle ] || oracle=true
        cat <<END
{"name": "topk/$k", "op": "topk", "engine": "cuda", "code_hash": "f00$k", "oracle": $oracle},
END
    done
    echo '{"name": "topk/host", "op": "topk", "engine": "host", "code_hash": "1"}]}'
    exit 0
fi
for word; do
    case $before in
    -k) kernel=${word#topk/} ;;
    --wrap) tool=$(echo "$word" | sed 's/.*--tool \\([a-z]*\\).*/\\1/') ;;
    --reference-s) share=$((100 - word)) ;;
    esac
    before=$word
done
[ $kernel != oracle ] || { echo 'kbench: -k topk/oracle: is no competitor' >&2; exit 2; }
eval "says=\\${${tool}_$kernel:-${all:-fine}}"
row="  topk/$kernel O(n^1)
               ok  error 1.8e-3, ${share:-37} % checked"
probe='  topk/gather  ok  error 0, 100 % checked'
read_of() { echo '========= Uninitialized __global__ memory read of size 16 bytes'
            echo "=========     at $1+0x10 in x.cuh:7"
            echo '=========     by thread (0,0,0) in block (8,0,0)'
            echo '=========         Device Frame: void run<int, (bool)1>(args &)+0x490 in y.cu:1'
            echo '=========         Host Frame: launch(call const*) in z.cu:240 [0x9aeb4] in kbench'
            echo '========= '; }
case $says in
fine) echo "$row"; echo "$probe"; echo '========= ERROR SUMMARY: 0 errors' ;;
harness) echo "$row"; read_of 'hash_kernel(int)'; echo '========= ERROR SUMMARY: 1 error' ;;
kernel) echo "$row"; read_of 'void load<int>(int) const'; read_of 'hash_kernel(int)'; echo '========= ERROR SUMMARY: 2 errors' ;;
load) echo "$row"; read_of 'void load<int>(int) const'; echo '========= ERROR SUMMARY: 1 error' ;;
stopped) read_of 'void load<int>(int) const'; echo '  topk/x   crash  unspecified launch failure'; echo "$probe"
         echo '========= ERROR SUMMARY: 1 error'; exit 1 ;;
more) echo "$row"; read_of 'void load<int>(int) const'; echo '========= ERROR SUMMARY: 3 errors'
      echo '========= ERROR SUMMARY: 2 errors were not printed. Use --print-limit option to adjust' ;;
bare_report) echo "$row"; echo '========= ERROR SUMMARY: 1 error' ;;
probe) echo "$probe"; echo '========= ERROR SUMMARY: 0 errors' ;;
dies) echo '  topk/x   crash  unspecified launch failure'; echo '========= ERROR SUMMARY: 0 errors'; exit 1 ;;
wrong) echo '  topk/x'; echo '       wrong  out[0] is 1, should be 2'; echo '========= ERROR SUMMARY: 0 errors'; exit 1 ;;
unfit) echo '  topk/x  unsupported  needs more'; echo '========= ERROR SUMMARY: 0 errors' ;;
silent) ;;
bare) echo 'kbench: no device: none'; exit 5 ;;
esac
"""
KNOWN = "tool,kernel,says,place,proof,reason\n"


def script(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)
    return path


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def judged(program, folder, *words, **settings):
    """waits.py or neighbours.py over the stand-ins; settings: what they are to say."""
    path = os.path.join(SOURCE, "tests", "gpu", program)
    return subprocess.run([sys.executable, "-B", path, *words], capture_output=True, text=True, cwd=folder,
                          env={**os.environ, "TMPDIR": folder, **settings}, timeout=120, check=False)


def waits(folder, *words, **settings):
    runner, tool = script(folder, "waits", WAITS), script(folder, "sanitizer", SANITIZER)
    done = judged("waits.py", folder, runner, "--sanitizer", tool, "--out", "out", "--csv", "waits.csv", *words, **settings)
    path = os.path.join(folder, "waits.csv")
    rows = {(row["style"], row["form"]): row for row in read(path)} if os.path.exists(path) else {}
    return done, rows


def what_a_tool_sees(folder):
    done, rows = waits(folder, a_early="wrong", racecheck_a_early="3", racecheck_b_early="1", racecheck_b_right="1",
                       synccheck_c_right="dies", synccheck_c_early="dies", initcheck_d_early="dies")
    expect_exit(done, 0)
    want = {("a", "right"): ["right", "clean", "clean", "clean", "clean"],
            ("a", "early"): ["wrong", "not covered", "seen", "not covered", "not covered"],
            ("b", "right"): ["right", "clean", "false alarm", "clean", "clean"],
            ("b", "early"): ["right", "not covered", "not told apart", "not covered", "not covered"],
            ("c", "right"): ["right", "clean", "clean", "clean", "does not run"],
            ("c", "early"): ["right", "not covered", "not covered", "not covered", "does not run"],
            ("d", "early"): ["right", "not covered", "not covered", "does not run", "not covered"]}
    for key, cells in want.items():
        found = [rows[key][column] for column in ("alone", "memcheck", "racecheck", "initcheck", "synccheck")]
        expect(found == cells, f"{key}: {found}", done)
    expect(len(rows) == 10 and rows["a", "early"]["racecheck_reports"] == "3", f"{rows}", done)
    expect(rows["a", "early"]["handed_on"] == "words, more" and rows["a", "early"]["lacks"] == "a wait", f"{rows}", done)
    done, rows = waits(folder, "--styles", "a", "--more", "--a-check yes", racecheck_a_early="3")
    expect(rows["a", "early"]["racecheck"] == "seen" and rows["a", "early"]["version"] == "unknown --a-check yes", f"{rows}", done)
    with open(os.path.join(folder, "out", "a-early-racecheck.txt"), encoding="utf-8") as file:
        expect("results: right" in file.read(), "the tool's output is not kept")


def right_forms_must_be_right(folder):
    for settings in ({"b_right": "wrong"}, {"b_right": "dead"}, {"b_right": "hang"}):
        done, rows = waits(folder, "--timeout", "1", "--styles", "a,b", "--tools", "memcheck", **settings)
        expect_exit(done, 1)
        expect("FAILED: b:" in done.stdout and "FAILED: a:" not in done.stdout and len(rows) == 4, "", done)
    done, rows = waits(folder, "--timeout", "1", "--styles", "a", "--tools", "memcheck", a_early="hang")
    expect_exit(done, 0)
    expect(rows["a", "early"]["alone"] == rows["a", "early"]["memcheck"] == "hangs", f"{rows}", done)
    done, rows = waits(folder, "--limit", "0", "--tools", "memcheck")
    expect_exit(done, 0)
    expect(rows["a", "right"]["alone"] == rows["a", "early"]["memcheck"] == "not run", f"{rows}", done)
    expect_exit(waits(folder, a_right="bare")[0], 77)
    expect_exit(waits(folder, "--styles", "z")[0], 1)


def runs_beside_neighbours_add_up(folder):
    words = [script(folder, "sweep", SWEEP), script(folder, "neighbour", NEIGHBOUR), "--csv", "n.csv", "--out", "out"]
    began = time.monotonic()
    done = judged("neighbours.py", folder, *words, "--runs", "2", "--cases", "quiet,loop", MARKED="copy")
    expect_exit(done, 0)
    done = judged("neighbours.py", folder, *words, "--runs", "3", "--cases", "quiet", MARKED="copy")
    expect_exit(done, 0)
    expect("quiet: 0 of 5 runs marked" in done.stdout, "earlier runs are not counted", done)
    rows = read(os.path.join(folder, "n.csv"))
    expect([row["run"] for row in rows if row["case"] == "quiet"] == ["0", "1", "2", "3", "4"] and len(rows) == 7, f"{rows}")
    row = next(row for row in rows if row["case"] != "quiet")
    expect((row["marked"], row["rows"], row["rows_contended"], row["reason"]) == ("1", "2", "1", "attn/mma: so, and so"), f"{row}")
    expect((row["canary_p25_ns"], row["canary_p50_ns"], row["canary_max_ns"], row["wait_p50_ns"]) == ("3025", "3050", "3100", ""),
           f"{row}")
    expect(time.monotonic() - began < 19, "a neighbour is waited for, not ended")
    done = judged("neighbours.py", folder, *words, "--runs", "2", "--cases", "bursts", MARKED="")
    expect_exit(done, 1)
    expect("MISSED" in done.stdout, "", done)
    row = next(row for row in read(os.path.join(folder, "n.csv")) if row["case"].startswith("bursts"))
    expect((row["batches"], row["code"]) == (",".join(tested_neighbours.BATCHES), "c0de"), f"{row}")


def neighbours_refuse(folder):
    words = [script(folder, "sweep", SWEEP), script(folder, "neighbour", NEIGHBOUR), "--out", "out", "--runs", "1"]
    good = ",".join(tested_neighbours.COLUMNS) + "\n" + "quiet,0,8,c0de,1,50,2,0,0" + "," * 10 + "\n"
    script(folder, "old.csv", good.replace(",batches,code", "").replace(",8,c0de", ""))
    script(folder, "cut.csv", good[:-4])
    script(folder, "short.csv", good + "quiet,1,8\n")
    script(folder, "good.csv", good)
    os.mkdir(os.path.join(folder, "folder"))
    for more in (("--cases", "none"), ("--cases", ""), ("--csv", "sweep"), ("--runs", "0"), ("--runs", "-3"), ("--part", "2/2"),
                 ("--part", "1"), ("--part", ""), ("--batches", "x"), ("--batches", "8,,16"), ("--batches", "0"), ("--batches", ""),
                 ("--csv", "folder"), ("--csv", "none/n.csv"),
                 ("--csv", "old.csv"), ("--csv", "cut.csv"), ("--csv", "short.csv"), ("--out", "sweep")):
        done = judged("neighbours.py", folder, *words, *more, MARKED="copy")
        expect(done.returncode == 2 and done.stderr.count("\n") == 1 and not done.stdout, f"{more}", done)
    for at in (0, 1):
        done = judged("neighbours.py", folder, *words[:at], "no-such-program", *words[at + 1:], "--cases", "quiet", MARKED="")
        expect(done.returncode == 2 and not done.stdout, "a missing program is found late", done)
    done = judged("neighbours.py", folder, *words, "--cases", "quiet", "--csv", "good.csv", "--batches", "8,16", MARKED="")
    expect(done.returncode == 0 and "0 of 2 runs" in done.stdout and read(folder + "/good.csv")[1]["batches"] == "8,16", "", done)


def one_run_can_miss(folder):
    words = [script(folder, "sweep", SWEEP), script(folder, "neighbour", NEIGHBOUR), "--runs", "1", "--short"]
    for case, marked, code in (("quiet", "quiet", 1), ("quiet", "", 0), ("loop", "", 1), ("loop", "copy", 0), ("bursts", "", 1)):
        expect_exit(judged("neighbours.py", folder, *words, "--cases", case, MARKED=marked), code)
    shares = {name: case[2:4] for name, case in tested_neighbours.CASES.items()}
    for name, runs, want in (("quiet", 19, (0, 0)), ("quiet", 20, (0, 1)), ("quiet", 40, (0, 2)), ("loop", 1, (1, 1)),
                             ("loop", 20, (19, 20)), ("bursts", 1, (1, 1)), ("bursts", 20, (18, 20))):
        found = tested_neighbours.bounds(*shares[name], runs)
        expect(found == want, f"{name}, {runs} runs: {found}")


def parts_share_the_runs(folder):
    beside = NEIGHBOUR.replace("ready", "ready\necho $CUDA_VISIBLE_DEVICES >>seen")
    words = [script(folder, "sweep", SWEEP), script(folder, "neighbour", beside),
             "--csv", "n.csv", "--out", "out", "--runs", "5"]
    for part, device, said in (("1/2", "cuda:1", "so far 2 of 2"), ("0/2", "cuda:0", "loop at 20 %: 5 of 5"),
                               ("0/2", "cuda", "5 of 5")):
        done = judged("neighbours.py", folder, *words, "--cases", "loop", "--part", part, "--device", device, MARKED="copy",
                      CUDA_VISIBLE_DEVICES="3,GPU-7")
        expect(done.returncode == 0 and said in done.stdout, f"{part}", done)
        expect("runs measured for less than 15 s" in done.stdout, "a run of 0.1 s passes for one of 15", done)
    expect([row["run"] for row in read(os.path.join(folder, "n.csv"))] == ["1", "3", "0", "2", "4"], "runs are lost or made twice")
    with open(os.path.join(folder, "seen"), encoding="utf-8") as file:
        expect(file.read().split() == ["GPU-7"] * 2 + ["3"] * 3, "a neighbour on another GPU")
    whole = [case[4] for case in tested_neighbours.CASES.values()]
    expect(whole[0] == whole[2] and len(whole[0]) * 3 * 0.456 > tested_neighbours.MEASURED_S, "quiet runs are too short")


def kept_neighbours_can_be_gone_on_with(_):
    kept = tested_neighbours.earlier(os.path.join(SOURCE, "results", "h200", "neighbours", "neighbours.csv"))
    expect(len(kept) >= 60 and all(line["code"] and line["batches"] for line in kept), f"{kept}")


def sanitizers(folder, *words, known=KNOWN, **settings):
    program, nothing = script(folder, "kbench", CHECK), script(folder, "sanitizer", "#!/bin/sh\necho Version 2026.4.0.0\n")
    script(folder, "known.csv", known)
    done = judged("sanitizers.py", folder, program, "--sanitizer", nothing, "--csv", "s.csv", "--out", "o", "--known", "known.csv",
                  *words, **settings)
    expect("Traceback" not in done.stderr, "", done)
    return done


def sanitized(folder):
    return {(row["kernel"].split("/")[1], row["tool"]): row for row in read(os.path.join(folder, "s.csv"))}


def kernels_under_tools(folder):
    done = sanitizers(folder, initcheck_a="harness", initcheck_b="kernel", synccheck_c="dies", synccheck_b="unfit")
    expect_exit(done, 1)
    rows = sanitized(folder)
    expect(len(rows) == 12, f"{rows}", done)
    found = [rows[key]["verdict"] for key in (("a", "memcheck"), ("a", "initcheck"), ("b", "initcheck"), ("c", "synccheck"),
                                              ("b", "synccheck"))]
    expect(found == ["clean", "harness", "reports", "does not run", "unsupported"], f"{found}", done)
    row = rows["b", "initcheck"]
    expect(row["where"] == "load x.cuh:7 1x; hash_kernel x.cuh:7 1x", f"{rows}", done)
    expect((row["code_hash"], row["problems"], row["checked"], row["variant"]) == ("f00b", "1", "1", ""), f"{row}", done)
    expect((row["sanitizer"], row["program"], row["reports"]) == ("2026.4.0.0", "c0de", "2"), f"{row}", done)
    expect_exit(sanitizers(folder, synccheck_b="unfit"), 0)
    for says in ("kernel", "harness", "wrong", "dies", "silent", "more", "bare_report", "probe"):
        for name in ("memcheck_a", "racecheck_b"):
            expect_exit(sanitizers(folder, **{name: says}), 1)
    expect_exit(sanitizers(folder, memcheck_a="bare"), 77)


def only_known_reports_pass(folder):
    def judge(place, says="load", proof="", reason="why", rest="", words=(), tool="initcheck"):
        line = f"{tool},topk/*,Uninitialized __global__,{place},{proof},{reason}\n"
        done = sanitizers(folder, "--tools", "initcheck", *words, known=KNOWN + rest + line, initcheck_b=says)
        return done, sanitized(folder)["b", "initcheck"]["verdict"] if done.returncode < 2 else ""

    for place, says, want in (("^load x", "load", "explained"), ("^run y", "load", "explained"), ("^lod", "load", "reports"),
                              ("^load x", "kernel", "harness"), ("^(load|hash_kernel) x", "kernel", "explained"),
                              ("^load x", "more", "reports"), ("^load x", "stopped", "partly"),
                              ("^load x", "bare_report", "reports")):
        done, verdict = judge(place, says)
        expect(verdict == want and done.returncode == (0 if want == "explained" else 1), f"{place}, {says}: {verdict}", done)
    done, verdict = judge("^load x", "fine")
    expect(done.returncode == 0 and verdict == "clean" and "stale: initcheck, topk/*, ^load x" in done.stdout, "", done)
    done, verdict = judge("^load x", tool="memcheck")
    expect(done.returncode == 1 and verdict == "reports" and "stale" not in done.stdout, "another tool's report", done)
    table = "style,form,initcheck,version\nring,right,clean,1\nput,early,false alarm,2026.4.0.0\n"
    for row, want in (("put,right,false alarm,2026.4.0.0", "explained"), ("put,right,clean,2026.4.0.0", "reports"),
                      ("put,right,false alarm,2026.3.0.0", "reports"), ("put,right,does not run,2026.4.0.0", "reports"),
                      ("put,right,false alarm,2026.4.0.0 --a-check yes", "reports"), ("", "reports")):
        script(folder, "waits.csv", table + row + "\n")
        done, verdict = judge("^load x", proof="put/right", words=("--waits", "waits.csv"))
        expect(verdict == want and ("unproven: " in done.stdout) == (want == "reports"), f"{row}: {verdict}", done)
    done, verdict = judge("^load x", proof="put/right")
    expect(verdict == "reports" and "no waits.csv" in done.stdout, "a proof that nobody has seen", done)
    for words in ({"place": ""}, {"place": "("}, {"place": ".*"}, {"reason": ""}, {"proof": "put"}, {"tool": "bogus"},
                  {"rest": "a,b\n"}):
        done, _ = judge(**{"place": "^load x", **words})
        expect(done.returncode == 2 and done.stderr.count("\n") == 1, f"{words}", done)


def own_known_reports_are_read(_):
    for one in known_reports.read(os.path.join(SOURCE, "tests", "gpu", "known_reports.csv")):
        expect(not one.row["proof"] or re.search(rf'^ *{{"{one.row["proof"].split("/")[0]}", ',
               open(os.path.join(SOURCE, "tests", "gpu", "waits", "waits.cu"), encoding="utf-8").read(), re.MULTILINE),
               f"{one.words()}: waits.cu has no such style")


def oracles_run_beside_others(folder):
    done = sanitizers(folder, "--tools", "memcheck", kernels="oracle simt")
    expect_exit(done, 0)
    rows = sanitized(folder)
    expect(rows["oracle", "memcheck"]["verdict"] == "clean" and rows["oracle", "memcheck"]["checked"] == "1", f"{rows}", done)
    expect("batch=3" in rows["oracle", "memcheck"]["variant"], f"{rows}", done)
    done = sanitizers(folder, "--tools", "memcheck", kernels="oracle fast")   # nothing to run beside
    expect_exit(done, 1)
    expect(tested.checked("  topk/simt  ok  error 0, 99.5 % checked\n", "topk/simt", True) == 0, "not all by the oracle")


RACE = """========= COMPUTE-SANITIZER
========= Error: Race reported between Read access at void sum<shape<(int)16>, (int)1>(const args &, T1 &)+0x1f50 in sum.cuh:109
=========     and Write access at scorer<shape<(int)16>>::give(turn<(int)2>, float) const+0xab80 in score.cuh:99 [112 hazards]
=========     and Write access at nvjet_sm90_tss_8x64+0xb460
=========\x20
  topk/a  ok  error 0, 100 % checked
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""


def reports_are_read(_):
    (one,), kept = tool_of.reports_of(RACE)
    expect(one.says == "Error: Race reported" and
           one.accesses == (("sum sum.cuh:109",), ("scorer::give score.cuh:99",), ("nvjet_sm90_tss_8x64",)), f"{one}")
    expect(kept == RACE and tool_of.counted(RACE) == 1, kept)
    many, kept = tool_of.reports_of(RACE * 5)
    expect(len(many) == 5 and kept.count("Race reported") == 3 and kept.count("checked") == 5 and "(2 reports" in kept, kept)
    said = "========= ERROR SUMMARY: 5 errors\n========= ERROR SUMMARY: 3 errors were not printed. Use\n"
    expect(tool_of.counted(said * 2) == 10 and tool_of.counted("") is None, "what is not printed is of what was said before")
    row = known_reports.Known(dict(zip(known_reports.COLUMNS, ("racecheck", "*", "Race", "sum|give", "", "x"))))
    expect(not row.covers(one), "the third access is not covered")


def the_newest_tool_is_taken(folder):
    def tool(path, version):
        os.makedirs(os.path.join(folder, path), exist_ok=True)
        return script(os.path.join(folder, path), "compute-sanitizer", f"#!/bin/sh\n{version}\n")

    expect(not tool_of.VARIABLE.startswith("KBENCH_"), "the program would refuse it: no such option")
    name, old = tool_of.VARIABLE, tool("bin", "echo 'Version 2025.3.1.0 (build 1)'")
    new = tool("nvidia/cu13/compute-sanitizer", "echo Version 2025.10.0.0")
    runner = script(folder, "waits", WAITS)
    paths = {"PATH": os.path.dirname(old) + ":" + os.environ["PATH"], "PYTHONPATH": folder}
    for named, words, want in (("", (), new), (old, (), old), (old, ("--sanitizer", new), new)):
        done = judged("waits.py", folder, runner, "--styles", "a", "--tools", "memcheck", "--csv", "w.csv", *words,
                      **paths, **{name: named})
        expect(f": {want}" in done.stdout, f"{named} {words}", done)
        version = {old: "2025.3.1.0", new: "2025.10.0.0"}[want]
        expect(read(os.path.join(folder, "w.csv"))[0]["version"] == version, version, done)
    expect_exit(judged("waits.py", folder, runner, "--sanitizer", "no-such"), 2)
    tool("bin", "exit 3")
    done = judged("waits.py", folder, runner, "--styles", "a", "--sanitizer", old)
    expect("compute-sanitizer unknown" in done.stdout, "", done)


def nothing_ran_is_no_pass(folder):
    for words in (("--kernels", "nosuch"), ("--kernels", "topk/a,nosuch/*"), ("--kernels", "topk/host"), ("--kernels", ""),
                  ("--tools", "bogus"), ("--tools", ""), ("--jobs", "0"), ("--jobs", "-1"), ("--timeout", "0")):
        done = sanitizers(folder, *words)
        expect(done.returncode == 2 and done.stderr.count("\n") == 1, f"{words}", done)
    for words in ((), ("--tools", "racecheck")):
        for says in ("silent", "unfit"):
            done = sanitizers(folder, *words, all=says)
            expect(done.returncode == 2 and "nothing ran" in done.stderr, says, done)
    expect_exit(judged("sanitizers.py", folder, "no-such-program"), 2)
    expect_exit(sanitizers(folder, "--known", "no-such-file"), 2)
    expect_exit(sanitizers(folder, "--sanitizer", "no-such-tool"), 2)
    expect_exit(judged("waits.py", folder, "waits", "--jobs", "0"), 2)
    expect_exit(judged("waits.py", folder, "waits", "--tools", "bogus"), 2)


def fewer_than_asked_is_partly(_):
    line = {"problems": 2, "checked": 1, "reports": 0}
    harness = tool_of.Report("", (("hash_kernel x:1",),))
    expect(tested.verdict("", 0, line, []) == "partly", "one of two is clean")
    expect(tested.verdict("", 0, line, [harness]) == "partly", "one of two is the harness's")
    expect(tested.verdict("", 0, {**line, "reports": 1}, [tool_of.Report("", (("load x:1",),))]) == "reports", "a report is lost")
    expect(tested.verdict("", 0, {**line, "reports": 1}, []) == "partly", "one of two is explained")
    expect(tested.verdict("", 0, {**line, "reports": 1, "checked": 2}, []) == "explained", "two of two are not explained")
    expect(tested.verdict("", 0, {**line, "checked": 2}, []) == "clean", "two of two are not clean")
    expect(tested.verdict("", 1, {**line, "checked": 2}, []) == "does not run", "a failed check is clean")
    expect(tested.verdict("", None, line, []) == "hangs", "")


def variants_are_the_kernels_own(_):
    """What the program lists has the tunables, and plans as many problems as are counted."""
    listed = {k["name"]: k for k in json.loads(kbench("list", "kernels", "--json").stdout)["kernels"]}
    for kernel in listed.values():
        expect(kernel["engine"] == "host" or kernel["op"] in tested.SHAPES, f"{kernel['op']} has no shapes")
    for name, variants in tested.VARIANTS.items():
        bounds = {t["name"]: (t["min"], t["max"]) for t in listed.get(name, {"tunables": []})["tunables"]}
        for tunes, _ in variants if name in listed else []:   # built without CUDA: none is
            for tune, values in (word.split("=") for word in tunes):
                low, high = bounds[tune]
                expect(all(low <= int(value) <= high for value in values.split(",")), f"{name}: {tune}={values}")
    shapes = {op: [words] for op, words in tested.SHAPES.items()}
    for name, variants in tested.VARIANTS.items():
        shapes[name.split("/", maxsplit=1)[0]] += [own for _, own in variants if own]
    for op, shape in ((op, shape) for op, several in shapes.items() for shape in several):
        words = [w for dim in shape for w in (["--zip", dim[4:]] if dim.startswith("zip=") else ["-a", dim])]
        one = min(name for name, kernel in listed.items() if kernel["op"] == op and kernel["engine"] == "host")
        done = kbench("check", "-n", "--device", "host", "-k", one, *words)
        count = tested.problems([], shape)
        expect(re.search(rf"\b{count} row groups?, {count} rows?:", done.stdout), f"{op}: not {count} problems", done)
    expect(tested.problems(["path=2", "splits=1,4"], tested.ATTENTION) == 8, "tunables do not multiply")


def the_script_has_a_usage(folder):
    for words in (("-o",), ("-o", ""), ("-x",), ("--help",)):
        done = subprocess.run(["sh", os.path.join(SOURCE, "tests", "gpu.sh"), *words], capture_output=True, text=True, cwd=folder,
                              timeout=60, check=False)
        expect(done.returncode == 2 and done.stderr.startswith("usage: ") and done.stderr.count("\n") == 1, f"{words}", done)
    expect(sorted(os.listdir(folder)) == [], "it leaves something")


# A program whose `check` runs what --wrap says, and a tool of each kind; each word in $says makes one thing wrong.
PYTHON = f"#!{sys.executable} -SE"
WRAPPED = PYTHON + """
import json, os, shlex, subprocess, sys
says = os.environ.get("says", "").split()
if sys.argv[1] == "--version":
    sys.exit(print("kbench c0de"))
if sys.argv[1] == "doctor":
    if "bare" in says:
        sys.exit(print("kbench: no device: none") or 5)
    print("{" if "unread" in says else '{"device": {"uuid": "GPU-1", "sm_clock_MHz": 2000}}')
    sys.exit(0)
if sys.argv[1] == "list":
    kernels = [("attn/gather", []), ("attn/mma", ["pair"]), ("attn/splitk", ["splits", "path"])]
    print(json.dumps({"ops": [{"name": "attn", "dims": [{"name": "batch", "default": 16}, {"name": "heads", "default": 64},
                                                        {"name": "ctx", "default": 8192}]}]} if sys.argv[2] == "ops" else
                     {"kernels": [{"name": name, "tunables": [{"name": word, "values": [0]} for word in words]}
                                  for name, words in kernels]}))
    sys.exit(0)
wrap = shlex.split(sys.argv[sys.argv.index("--wrap") + 1])
subprocess.run([*wrap, "worker"], check=False)
for kernel in ["attn/mma O(ctx^0.03)", "attn/splitk", "attn/gather"]:
    print(f"  {kernel}  " + ("wrong  out[0]" if "wrong" in says and "splitk" in kernel else "ok  error 1e-3, 100 % checked"))
sys.exit(1 if "wrong" in says or "fails" in says else 0)
"""
NCU = PYTHON + """
import os, sys
says = os.environ.get("says", "").split()
if sys.argv[1] == "--version":
    sys.exit(print("NVIDIA (R) Nsight\\nVersion 2025.3.1.0 (build 1)"))
options = " ".join(sys.argv[1:])
if "--clock-control none --nvtx --metrics sm__cycles_elapsed.max,gpu__time_duration.sum" not in options:
    sys.exit(9)
filtered = "--nvtx-include" in sys.argv
if filtered and sys.argv[sys.argv.index("--nvtx-include") + 1:] != ["regex:attn.mma .*/", "worker"]:
    sys.exit(9)
for kernel, name in (("hash_kernel(const unsigned long *)", "mma"), ("void attn_mma<shape<2, 64>>(attn_args, int)", "mma"),
                     ("void attn_splitk_wgmma<2>(attn_args)", "splitk"), ("scatter_kernel(int)", "splitk")):
    if (filtered and name != "mma" and "loose" not in says) or ("lost" in says and "attn_mma" in kernel):
        continue
    print(f"  {kernel} (640, 1, 1)x(256, 1, 1), Context 1, Stream 13, Device 0, CC 9.0\\n\\n    NVTX Push/Pop Stack for Thread 6:")
    other = "other" in says and "attn_mma" in kernel
    if "bare_ncu" not in says:
        print(f"        <0,attn/{'splitk' if other else name} batch=64,ctx=128K pair=0>")
    us = 20 if "slow" in says else 14
    print("    sm__cycles_elapsed.max       cycle       28,024")
    print(f"    gpu__time_duration.sum       {'ns' if 'ns' in says else 'us'}     {us * 1000 if 'ns' in says else us:,}")
    short = "  empty_kernel() (1, 1, 1)x(1, 1, 1), Context 1, Stream 13, Device 0, CC 9.0\\n  <0,attn/mma batch=64 pair=0>"
    print(short + "\\n    sm__cycles_elapsed.max cycle 900\\n    gpu__time_duration.sum us 1.5")
"""
MEMCHECK = PYTHON + """
import os, sys
says = os.environ.get("says", "").split()
if sys.argv[1] == "--version":
    sys.exit(print("Version 2026.4.0.0"))
if sys.argv[1] == "--help":
    sys.exit(print("--tool" if "old" in says else "--nvtx arg --nvtx-include arg --dump-kernel-launches"))
filtered = "--nvtx-include" in sys.argv
kernels = ["_Z11hash_kernelPKmmPy", "void attn_mma<2>(int)", "_ZL11attn_splitkILi2EEvi"] if "old" not in says else []
for i, kernel in enumerate(kernels):
    left_out = filtered and "splitk" in kernel and "loose" not in says
    print(f"========= Launch #{i}" + (" (filtered: not in NVTX include list)" if left_out else ""))
    print(f"=========   Kernel: {kernel}\\n=========   Grid:   (1, 1, 1)")
if "silent" not in says:
    print(f"========= ERROR SUMMARY: {2 * ('reports' in says) + len(kernels) * ('counts' in says)} errors")
"""
NSYS = PYTHON + """
import os, sys
says = os.environ.get("says", "").split()
if sys.argv[1] == "--version":
    sys.exit(print("NVIDIA Nsight Systems version 2025.5.1.121"))
if sys.argv[1] == "stats":
    stray = "B" if "stray" in says else ""
    print(f'Time,Range\\n1,":attn/mma batch=64,ctx=128K pair=0{stray}"\\n1,":attn/splitk batch=64,ctx=128K splits=0;path=0"')
    sys.exit(1 if "raw" in says else 0)
with open(sys.argv[sys.argv.index("-o") + 1] + (".qdstrm" if "raw" in says else ".nsys-rep"), "wb") as file:
    file.write(b"!attn/mma batch=64,ctx=128K pair=0" + (b"1, attn/mma pair=0" if "none" in says else b"B\\xff\\x00"))
    file.write(b"Dattn/splitk batch=64,ctx=128K splits=0;path=0\\x07" if "whole" in says else b"attn/splitk \\x12 splits=0;path=0")
"""
SMI = """#!/bin/sh
case $* in *clocks.applications*) [ -z "$old_smi" ] || exit 2; set="1980 MHz, 1980 MHz" ;; *) set="1980 MHz" ;; esac
[ -z "$sets" ] || { echo >>$sets; set="1980 MHz, $(wc -l <$sets) MHz"; }
echo "$set, 345 MHz, 0x0000000000000000"
"""


def wrapped(folder, *words, says="", **settings):
    """tools.py over the stand-ins, as lines by tool and form."""
    bins = os.path.join(folder, "bin")
    os.makedirs(bins, exist_ok=True)
    for name, text in (("nvidia-smi", SMI), ("ncu", NCU), ("compute-sanitizer", MEMCHECK), ("nsys", NSYS)):
        script(bins, name, text)
    program = script(folder, "kbench", WRAPPED)
    shutil.rmtree(os.path.join(folder, "o"), ignore_errors=True)
    done = judged("tools.py", folder, program, "--out", "o", "--csv", "t.csv", "--sanitizer", bins + "/compute-sanitizer", *words,
                  says=says, **{"PATH": bins + ":" + os.environ["PATH"], **settings})
    expect("Traceback" not in done.stderr, says, done)
    return done, {(row["tool"], row["form"]): row for row in read(os.path.join(folder, "t.csv"))} if done.returncode < 2 else {}


def tools_behind_wrap(folder):
    done, rows = wrapped(folder)
    expect_exit(done, 0)
    expect([row["verdict"] for row in rows.values()] == ["ok"] * 5, f"{rows}", done)
    every, left = rows["ncu", "all"], rows["ncu", "filtered"]
    expect((every["launches"], left["launches"], every["version"], every["program"]) == ("8", "4", "2025.3.1.0", "c0de"), f"{rows}")
    expect(every["kernels"] == "hash_kernel:1 empty_kernel:4 attn_mma:1 attn_splitk_wgmma:1 scatter_kernel:1", every["kernels"])
    expect(left["ranges"] == "attn/mma batch=64,ctx=128K pair=0 | attn/mma batch=64 pair=0", f"{left}")
    expect(left["only_its_range"] == "yes", f"{left}")
    expect((every["kernel_MHz"], every["doctor_MHz"]) == ("2002", "2000"), f"{every}")
    expect(every["before"] == "clocks.max.sm=1980 MHz clocks.applications.graphics=1980 MHz clocks.sm=345 MHz "
           "clocks_event_reasons.active=0x0000000000000000" == every["after"], f"{every}")
    sanitized_all, sanitized_left = rows["memcheck", "all"], rows["memcheck", "filtered"]
    expect((sanitized_all["launches"], sanitized_left["launches"], sanitized_left["filtered"]) == ("3", "2", "1"), f"{rows}")
    expect(rows["nsys", "all"]["ranges"] == "attn/mma batch=64,ctx=128K pair=0 | attn/splitk batch=64,ctx=128K splits=0;path=0",
           f"{rows}")
    with open(os.path.join(folder, "o", "ncu-filtered.txt"), encoding="utf-8") as file:
        expect("exit 0" in file.read(), "the tool's output is not kept")
    done, rows = wrapped(folder, "--tools", "ncu", says="ns", old_smi="1")
    expect(rows["ncu", "all"]["kernel_MHz"] == "2002" and "applications" not in rows["ncu", "all"]["before"], f"{rows}", done)
    done, rows = wrapped(folder, "--tools", "memcheck", says="counts")
    expect([row["verdict"] for row in rows.values()] == ["ok", "ok"], f"launches are reports: {rows}", done)
    expect(rows["memcheck", "filtered"]["kernels"] == "hash_kernel:1 attn_mma:1", f"{rows}", done)
    done, rows = wrapped(folder, "--tools", "memcheck", says="old")
    expect(done.returncode == 0 and [row["verdict"] for row in rows.values()] == ["ok", "not there"], f"{rows}", done)


def packed_names_are_partly_there(folder):
    """A recorder without an importer packs names: a byte of the packing behind one is no part of it, and none counts by halves."""
    for says, verdict, ranges in (
            ("raw", "partly: 1 of 2 names", "attn/mma batch=64,ctx=128K pair=0 | others are packed"),
            ("raw whole", "ok", "attn/mma batch=64,ctx=128K pair=0 | attn/splitk batch=64,ctx=128K splits=0;path=0")):
        done, rows = wrapped(folder, "--tools", "nsys", says=says)
        line = rows["nsys", "all"]
        expect(done.returncode == 0 and line["verdict"].startswith(verdict) and line["ranges"] == ranges, f"{rows}", done)
        expect(f"all: {verdict}" in done.stdout and "FAILED" not in done.stdout, "", done)
    done, rows = wrapped(folder, "--tools", "nsys", says="raw", sets="sets")
    expect(done.returncode == 1 and rows["nsys", "all"]["verdict"].startswith("clocks were set: "), f"{rows}", done)


def ranges_have_the_programs_names(_):
    """Dimensions that are not the op's own, in its order, and a name for each value of a tunable."""
    op = {"dims": [{"name": "batch", "default": 16}, {"name": "ctx", "default": 8192}, {"name": "tail", "default": "page0"}]}
    kernels = [{"name": "a/x", "tunables": [{"name": "p", "values": [0, 2]}, {"name": "q", "values": [1]}]},
               {"name": "a/y", "tunables": []}]
    for words, names in ((["ctx=128K", "batch=2"], ["a/x batch=2,ctx=128K p=0;q=1", "a/x batch=2,ctx=128K p=2;q=1",
                                                    "a/y batch=2,ctx=128K"]),
                         (["ctx=8K", "batch=16", "tail=page0"], ["a/x p=0;q=1", "a/x p=2;q=1", "a/y"])):
        found = tool_output.range_names(op, kernels, words)
        expect(found == names, f"{words}: {found}")


def wrapped_words_keep_their_quotes(folder):
    """The filter reaches a tool as one word, whoever splits --wrap."""
    said = os.path.join(folder, "said")
    ranged = script(folder, "tool", '#!/bin/sh\nprintf "%s\\n" "$2" >"$TOLD"\nshift 2\nexec "$@"\n')
    done = kbench("check", "--row", "attn/host_perhead batch=1,heads=8,ctx=256", "--device", "host", "--wrap",
                  f"{ranged} {tested_tools.FILTER}", env=environment(TOLD=said))
    expect_exit(done, 0)
    with open(said, encoding="utf-8") as file:
        expect(file.read() == "regex:attn.mma .*/\n", "the filter is another word", done)


def broken_promises_are_told(folder):
    for says, key, why in (("slow", ("ncu", "all"), "launches at 1401 MHz, 2000 without a tool"),
                           ("bare_ncu", ("ncu", "all"), "a launch of attn/mma outside of its range"),
                           ("other", ("ncu", "all"), "a launch of attn/mma outside of its range"),
                           ("lost", ("ncu", "filtered"), "no launch of attn/mma"),
                           ("loose", ("ncu", "filtered"), "the filter leaves launches of other ranges"),
                           ("loose", ("memcheck", "filtered"), "the filter leaves launches of other ranges"),
                           ("reports", ("memcheck", "all"), "2 reports"), ("reports counts", ("memcheck", "all"), "2 reports"),
                           ("silent", ("memcheck", "all"), "no summary"),
                           ("wrong", ("nsys", "all"), "exit 1, 1 of 2 kernels right"), ("fails", ("ncu", "all"), "exit 1, 2 of 2"),
                           ("raw none", ("nsys", "all"), "no range attn/mma batch=64,ctx=128K pair=0"),
                           ("stray", ("nsys", "all"), "no range attn/mma batch=64,ctx=128K pair=0")):
        done, rows = wrapped(folder, "--tools", key[0], says=says)
        expect(done.returncode == 1 and rows[key]["verdict"].startswith(why) and "FAILED: " in done.stdout, f"{says}: {rows}", done)
    done, rows = wrapped(folder, "--tools", "ncu", sets="sets")
    expect(done.returncode == 1 and "clocks were set: " in rows["ncu", "all"]["verdict"], f"{rows}", done)


def tools_that_are_not_there(folder):
    for words in (("--tools", "bogus"), ("--tools", ""), ("--ncu", "no-such"), ("--nsys", "no-such"), ("--limit", "0")):
        done, _ = wrapped(folder, *words)
        expect(done.returncode == 2, f"{words}", done)
    expect_exit(wrapped(folder, says="unread")[0], 2)
    expect_exit(judged("tools.py", folder, "no-such-program"), 2)
    expect_exit(wrapped(folder, says="bare")[0], 77)
    before = tested_tools.PLACES, os.environ["PATH"]
    try:
        os.environ["PATH"] = folder
        tested_tools.PLACES = {"ncu": [folder + "/v*/ncu"], "nsys": []}
        options = argparse.Namespace(tools=["ncu", "nsys"], ncu=None, nsys=None, sanitizer=None, version="c0de")
        tested_tools.find_tools(options)
        found = tested_tools.run(options, "ncu", "all"), tested_tools.run(options, "nsys", "all")
        expect([line["verdict"] for line in found] == ["not there"] * 2, f"{found}")
        for version in ("v2025", "v2024"):
            os.mkdir(os.path.join(folder, version))
            script(folder, version + "/ncu", "#!/bin/sh\necho Version 1.0\n")
        expect(tested_tools.program_of("ncu", None) == folder + "/v2025/ncu", "an older one")
    finally:
        tested_tools.PLACES, os.environ["PATH"] = before


def tool(name, *words):
    return subprocess.run([sys.executable, "-B", os.path.join(SOURCE, "tools", name), *words], capture_output=True, text=True,
                          check=False)


TRACED = "kernel,engine,ctx,tune,cache,seed,t_med_ns,breakdown,traced_ns,untraced_ns,kernels_per_call\n"
ROWS = "kernel,engine,status,ctx,more,tune,cache,timer,seed\n"
HOLDS = "a,cuda,1,,cold,1,20000,ok,20599,20000,9\n"


def traces_are_held_to_untraced_time(folder):
    script(folder, "rows.csv", ROWS + "a,cuda,ok,1,,,cold,graph,1\na,host,ok,1,,,cold,clock,1\n")
    for cells, code in (("20000,ok,20599,20000,9", 0), ("20000,ok,20601,20000,9", 1), ("20000,ok,19399,20000,9", 1),
                        ("1000,ok,1599,1000,2", 0), ("1000,ok,1601,1000,2", 1), ("1000,ok,399,1000,2", 1),
                        ("1000,records lost,1000,1000,2", 1), ("1000,,,,", 1), ("1000,ok,nan,1000,2", 2), ("1000,ok,1000,,2", 2),
                        ("1000,ok,1000,1000,0", 2), ("1000,ok,1000,1000,inf", 2), ("0,ok,1000,1000,2", 2), ("x,,,,", 2),
                        ("1000,ok,-1000,1000,2", 2), ("1000,ok,1000,1000", 2), ("1000,ok,1000,1000,2,3", 2)):
        script(folder, "counters.csv", TRACED + "a,cuda,1,,cold,1," + cells + "\na,host,1,,cold,1,1000,ok,9000,1000,1\n")
        done = tool("trace_check.py", folder)
        expect(done.returncode == code and "Traceback" not in done.stderr, f"{cells}: wanted exit {code}", done)
    for text in (TRACED + HOLDS[:-2], TRACED + HOLDS + HOLDS[:9], TRACED, "", TRACED + HOLDS.replace("cuda", "host"),
                 (TRACED + HOLDS).replace("tune", "tuned"), TRACED.replace("tune,", "") + HOLDS.replace(",,", ",")):
        script(folder, "counters.csv", text)
        done = tool("trace_check.py", folder)
        expect(done.returncode == 2 and done.stderr.count("\n") == 1, text, done)
    expect_exit(tool("trace_check.py", folder + "/none"), 2)


def rows_without_counters_are_missing(folder):
    script(folder, "counters.csv", TRACED + HOLDS)
    fine = "a,cuda,ok,1,,,cold,graph,1\n"
    for more, why in ((fine.replace("ok", "timeout"), "timeout in rows.csv"),
                      (fine.replace(",1,", ",2,", 1), "not in counters.csv"),
                      (fine.replace("cold", "hot"), "not in counters.csv"), ("b" + fine[1:], "not in counters.csv")):
        script(folder, "rows.csv", ROWS + fine + more)
        done = tool("trace_check.py", os.path.join(folder, "counters.csv"))
        expect(done.returncode == 1 and why in done.stdout and "\n1 of 2 rows" in done.stdout, more, done)
    script(folder, "rows.csv", ROWS + fine + fine + "b,cuda,unsupported,1,,,cold,graph,1\n")
    expect_exit(tool("trace_check.py", folder), 0)
    os.remove(os.path.join(folder, "rows.csv"))
    expect_exit(tool("trace_check.py", folder), 2)


def runs_agree(folder):
    for run, median in (("one", 20000), ("two", 20399), ("three", 20401)):
        os.mkdir(os.path.join(folder, run))
        script(os.path.join(folder, run), "rows.csv", f"kernel,status,timer,t_med_ns\na,ok,graph,{median}\n")
    one, two, three = (os.path.join(folder, run) for run in ("one", "two", "three"))
    expect_exit(tool("agree.py", one, two), 0)
    expect_exit(tool("agree.py", one, three), 1)
    for text in ("", "kernel,status,t_med_ns\na,ok,1\n", "kernel,timer,t_med_ns\na,graph,0\n",
                 "kernel,timer,t_med_ns\na,graph\n", "kernel,timer,t_med_ns\na,graph,nan\n", "kernel,timer\na,graph\n"):
        script(three, "rows.csv", text)
        done = tool("agree.py", one, three)
        expect(done.returncode == 2 and done.stderr.count("\n") == 1, text, done)
    for words in ((), (one,), (one, two, two), (one, folder + "/none")):
        done = tool("agree.py", *words)
        expect(done.returncode == 2 and done.stderr.count("\n") == 1, f"{words}", done)


main(what_a_tool_sees, right_forms_must_be_right, runs_beside_neighbours_add_up, neighbours_refuse,
     one_run_can_miss, parts_share_the_runs, kept_neighbours_can_be_gone_on_with, kernels_under_tools,
     only_known_reports_pass, own_known_reports_are_read, oracles_run_beside_others, reports_are_read, the_newest_tool_is_taken,
     nothing_ran_is_no_pass, fewer_than_asked_is_partly, variants_are_the_kernels_own,
     tools_behind_wrap, packed_names_are_partly_there, ranges_have_the_programs_names,
     wrapped_words_keep_their_quotes, broken_promises_are_told, tools_that_are_not_there,
     the_script_has_a_usage, traces_are_held_to_untraced_time, rows_without_counters_are_missing, runs_agree)
