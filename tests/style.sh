#!/bin/sh
# What a reader should never meet: tabs, trailing blanks, a missing last newline, overlong lines, paths of somebody's machine;
# functions longer than a screen; tables that miss a file; headers that don't compile alone.
# usage: style.sh SOURCE_ROOT [C_COMPILER]
set -u
cd "$1" || exit 99
cc=${2:-cc}
wrong=0

complain() {
    printf '%s\n' "$1"
    wrong=$((wrong + 1))
}

# grep_for WORDS FLAGS PATTERN FILES...: each line found is a complaint.
grep_for() {
    words=$1 flags=$2 pattern=$3
    shift 3
    found=$(grep -nIH "$flags" -e "$pattern" -- "$@" | head -n 20)
    [ -z "$found" ] || complain "$words:
$found"
}

# The tree as it is, without build folders, runs and evidence: in a clone what git knows of, in an archive all of it.
list() {
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files --cached --others --exclude-standard
    else
        find . -name build -prune -o -type f -print | sed 's|^\./||'
    fi | grep -v -e '^results/' -e '^LICENSE$' -e '^tests/fuzz/corpus/' |
        while IFS= read -r file; do [ ! -f "$file" ] || printf '%s\n' "$file"; done
}
tab=$(printf '\t')
set -f
IFS='
'
# shellcheck disable=SC2046
set -- $(list)
unset IFS

grep_for 'tabs' -F "$tab" "$@"
grep_for 'blanks at the end of a line' -E ' +$' "$@"
grep_for 'carriage returns' -F "$(printf '\r')" "$@"
grep_for 'paths of this machine' -F "$(pwd)/" "$@"
grep_for 'paths of a machine' -E '(^|[^A-Za-z0-9_.~}])/(home|root|Users)/[a-z]' "$@"
for file in "$@"; do
    case $file in *.svg | *.png | *.gz | *.csv) continue ;; esac
    [ -z "$(tail -c 1 "$file")" ] || complain "$file: no newline at its end"
    case $file in *.md | *.json | *.ini | tests/golden/*) continue ;; esac
    long=$(LC_ALL=C.UTF-8 awk 'length($0) > 132 {print FILENAME ":" FNR ": " length($0) " columns"}' "$file" | head -n 5)
    [ -z "$long" ] || complain "$long"
done

# Functions fit a screen: from { to }, each at the begin of its line. Kernels are one thought, however long.
for file in "$@"; do
    case $file in harness/*.[ch] | reference/*.[ch]) ;; *) continue ;; esac
    long=$(awk '/^{/ {begun = FNR}
        /^}/ && begun {
            if (FNR - begun >= 45) print FILENAME ":" begun ": a function of " (FNR - begun + 1) " lines, 45 at most"
            begun = 0
        }' "$file")
    [ -z "$long" ] || complain "$long"
done

# Tables: one line a file, and no file without its line.
for file in "$@"; do
    name=
    case $file in
    kernels/*/*.c | kernels/*/*.cu) name=${file#kernels/} table=kernels/meson.build ;;
    tests/unit/test_*.c) name=${file#tests/unit/test_} table=tests/meson.build ;;
    reference/*.c) grep -q '^const struct op op_' "$file" && name=${file#reference/} table=reference/meson.build ;;
    esac
    [ -z "$name" ] || grep -q "'${name%.*}'" "$table" || complain "$file: no line in $table"
done

# Headers compile alone, with the include path that their folder has; the contract also as C++20, since nvcc reads it.
walls() {
    case $1 in
    reference/*) echo '-Ireference' ;;
    kernels/*) echo '-Ireference -Ikernels' ;;
    *) echo '-Ireference -Ikernels -Iharness' ;;
    esac
}
set +f
toolkit=$(command -v nvcc | sed 's|/bin/nvcc$|/include|')
for file in "$@"; do
    case $file in reference/*.h | kernels/*.h | harness/*.h | decode/*.h) ;; *) continue ;; esac
    if grep -q '<cuda' "$file" && [ -z "$toolkit" ]; then continue; fi
    if ! grep -q '^#ifndef KBENCH_' "$file"; then     # a template, included more than once
        grep -q 'no include guard' "$file" || complain "$file: no include guard"
        continue
    fi
    # shellcheck disable=SC2046
    said=$("$cc" -std=c17 -D_GNU_SOURCE -Wall -Wextra -fsyntax-only $(walls "$file") ${toolkit:+-isystem "$toolkit"} \
        -x c "$file" 2>&1)
    [ -z "$said" ] || complain "$file does not compile alone:
$said"
done
if command -v g++ >/dev/null; then
    for file in reference/op.h kernels/kernel.h; do
        # shellcheck disable=SC2046
        said=$(g++ -std=c++20 -Wall -Wextra -fsyntax-only $(walls "$file") -x c++ "$file" 2>&1)
        [ -z "$said" ] || complain "$file does not compile as C++20:
$said"
    done
fi

[ "$wrong" = 0 ] || echo "$wrong complaints"
[ "$wrong" = 0 ]
