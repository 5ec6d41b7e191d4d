#!/bin/sh
# What a machine without a GPU can't test: planted kernels on the device, all default checks, the sweeps.
# usage: gpu.sh [-o FOLDER] [PART...]
#        PART: doctor, planted, check, sweep, neighbours (half an hour: is other work seen), waits (which sanitizer sees which
#        missing wait), sanitizers (every kernel under each of them; waits first, where FOLDER has no waits.csv), tools (what ncu,
#        memcheck and nsys show behind --wrap, and do to clocks), or a job file NAME.ini of sweeps/; none: the first four. From a
#        bundle or a built tree. Runs are left in FOLDER (default: gpu-test).
#        COMPUTE_SANITIZER: the compute-sanitizer to use, where the newest of this machine is not meant.
# The last line is 'N passed, N failed'; exit 1 where one failed, 77 where there is no GPU.
set -u

here=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
program=$here/kbench
planted=$here/planted/cuda
[ -d "$here/planted" ] || planted=${KBENCH_BUILD:-$here/build}/tests/planted/cuda
out=gpu-test
usage() {
    echo "usage: gpu.sh [-o FOLDER] [PART...]: $1" >&2
    exit 2
}
case ${1:-} in
-o) [ -n "${2:-}" ] || usage '-o names no folder'; out=$2; shift 2 ;;
-*) usage "no option '$1'" ;;
esac
mkdir -p "$out" || exit 5
passed=0 failed=0

# part WORDS COMMAND...
part() {
    words=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
        echo "ok: $words"
    else
        echo "FAILED (exit $?): $words: $*"
        failed=$((failed + 1))
    fi
}

waits() { part 'waits' python3 "$here/tests/gpu/waits.py" "$planted/waits" --out "$out/waits" --csv "$out/waits.csv"; }

"$program" doctor --device cuda >"$out/doctor.txt" 2>&1
code=$?
cat "$out/doctor.txt"
if [ "$code" = 5 ]; then
    echo "no GPU: $(tail -n 1 "$out/doctor.txt")"
    exit 77
fi

[ $# -gt 0 ] || set -- doctor planted check sweep
for word; do
    case $word in
    doctor) part 'doctor' "$program" doctor --device cuda --json >"$out/doctor.json" ;;
    planted)
        for object in "$planted"/*.so; do
            name=$(basename "$object" .so)
            part "planted $name" python3 "$here/tests/harness/planted.py" "$program" "$planted" cuda "$name"
        done ;;
    check) part 'check' sh -c '"$0" check --device cuda >"$1" || { cat "$1"; exit 1; }' "$program" "$out/check.txt" ;;
    sweep) part 'sweep' "$program" sweep --device cuda --out "$out/sweep" ;;
    neighbours) part 'neighbours' python3 "$here/tests/gpu/neighbours.py" "$program" "$planted/neighbour" --out "$out/neighbours" \
        --csv "$out/neighbours.csv" ;;
    sanitizers)   # what right forms are reported for explains reports of kernels
        [ -s "$out/waits.csv" ] || waits
        part 'sanitizers' python3 "$here/tests/gpu/sanitizers.py" "$program" --out "$out/sanitizers" \
            --csv "$out/sanitizers.csv" --waits "$out/waits.csv" ;;
    waits) waits ;;
    tools) part 'tools' python3 "$here/tests/gpu/tools.py" "$program" --out "$out/tools" --csv "$out/tools.csv" ;;
    *.ini) part "$word" "$program" sweep "$here/sweeps/$word" --device cuda --out "$out/$(basename "$word" .ini)" ;;
    *) usage "no part '$word'" ;;
    esac
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
