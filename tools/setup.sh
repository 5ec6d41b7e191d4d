# What ./kbench and ./test share: find what is missing, install it where that is allowed, configure, build.
# Sourced by a POSIX shell that has set `root`, the source tree, and `me`, its own name for messages.
# shellcheck shell=sh disable=SC2154

note() { printf '%s: %s\n' "$me" "$*" >&2; }
fail() { note "$*"; exit 5; }

# Sets build and log. KBENCH_BUILD, else build/ in the tree, else, in a tree that can't be written, the user's cache.
setup_build_folder() {
    if [ -n "${KBENCH_BUILD:-}" ]; then
        build=$KBENCH_BUILD
    elif [ -w "$root/build" ] || { [ ! -e "$root/build" ] && [ -w "$root" ]; }; then
        build=$root/build
    else
        build=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/kbench/$(printf %s "$root" | cksum | tr ' ' -)
    fi
    mkdir -p "$build" 2>/dev/null && [ -w "$build" ] ||
        fail "can't write the build folder $build; set KBENCH_BUILD to a folder that can be written"
    build=$(cd "$build" && pwd)
    log=$build/setup.log
}

# version_at_least HAVE WANT: dotted numbers.
version_at_least() {
    [ "$(printf '%s\n%s\n' "$2" "$1" | sort -t. -k1,1n -k2,2n -k3,3n | head -n 1)" = "$2" ]
}

# Sets nvcc (empty: none) and puts it on PATH: the PATH's own, CUDA_HOME's, /usr/local/cuda's, the newest /usr/local/cuda-*'s.
setup_find_nvcc() {
    nvcc=$(command -v nvcc || :)
    [ -z "$nvcc" ] || return 0
    newest=
    for folder in /usr/local/cuda-*; do [ -x "$folder/bin/nvcc" ] && newest=$folder; done
    for folder in "${CUDA_HOME:-}" /usr/local/cuda "$newest"; do
        if [ -n "$folder" ] && [ -x "$folder/bin/nvcc" ]; then
            nvcc=$folder/bin/nvcc
            PATH=$folder/bin:$PATH
            export PATH
            return 0
        fi
    done
}

# Sets gpu, a word for -Dgpu, and says why where there will be no cuda engine.
setup_choose_engine() {
    gpu=auto
    if [ -z "$nvcc" ]; then
        gpu=disabled
        note "no nvcc on PATH, in CUDA_HOME or /usr/local/cuda*: building the host engine alone"
    else
        release=$("$nvcc" --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\).*/\1/p')
        version_at_least "${release:-0}" 12.4 && return 0
        gpu=disabled
        note "$nvcc is version ${release:-unknown}, the cuda engine needs 12.4 or newer: building the host engine alone"
    fi
}

# lacks NAME PACKAGE: one more thing to install.
lacks() {
    missing="$missing${missing:+, }$1"
    case " $packages " in *" $2 "*) ;; *) packages="$packages${packages:+ }$2" ;; esac
}

# Sets missing and packages by what can't be done without (needed) or with less (optional: gnuplot).
setup_look() {
    missing=""
    packages=""
    compiler=${CC:-cc}
    printf '#include <stdio.h>\n' | ${compiler} -fsyntax-only -x c - 2>/dev/null ||
        { lacks 'a C compiler' gcc; lacks 'its headers' libc6-dev; }
    [ -z "$nvcc" ] || command -v "${CXX:-g++}" >/dev/null || lacks 'a C++ compiler (for nvcc)' g++
    found=$(meson --version 2>/dev/null || echo 0)
    version_at_least "$found" 1.0.1 || lacks 'meson 1.0.1 or newer' meson
    command -v ninja >/dev/null || lacks ninja ninja-build
    config=$(command -v pkg-config || command -v pkgconf || echo false)
    [ "$config" != false ] || lacks pkg-config pkg-config
    "$config" --exists inih || lacks inih libinih-dev
    "$config" --exists libcjson || lacks cJSON libcjson-dev
    [ "$for_tests" = no ] || "$config" --exists cmocka || lacks cmocka libcmocka-dev
    needed=$packages
    command -v gnuplot >/dev/null || lacks gnuplot gnuplot-nox
}

# Prints the package line; installs it as root. Ends where something needed is still missing, goes on without gnuplot.
setup_packages() {
    setup_look
    [ -n "$packages" ] || return 0
    note "missing: $missing"
    line="apt-get install -y --no-install-recommends $packages"
    if [ "$(id -u)" = 0 ] && [ "${KBENCH_INSTALL:-yes}" != no ] && command -v apt-get >/dev/null; then
        note "installing: $line"
        # shellcheck disable=SC2086
        { DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 update &&
          DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends $packages
        } >>"$log" 2>&1 </dev/null || { note "that did not work; the end of $log:"; tail -n 8 "$log" >&2; }
        setup_look
    else
        note "to install: $line"
    fi
    [ -z "$needed" ] || fail "can't build without: $missing. As root: $line"
    [ -z "$packages" ] || note "going on without gnuplot: no plots"
}

# run_logged WHAT COMMAND...: output goes to the log; where it fails, its end is shown. A terminal sees the last line as it goes.
run_logged() {
    what=$1
    shift
    if [ -t 2 ]; then
        { "$@" 2>&1 </dev/null && echo ok >"$build/setup.ok"; } |
            while IFS= read -r line; do
                printf '%s\n' "$line"
                case $line in '['*) printf '\r%.78s\033[K' "$line" >&2 ;; esac
            done >>"$log"
        printf '\r\033[K' >&2
    else
        { "$@" >>"$log" 2>&1 </dev/null && echo ok >"$build/setup.ok"; } || :
    fi
    if [ -e "$build/setup.ok" ]; then
        rm -f "$build/setup.ok"
    else
        # The end of the log, but not of an earlier step.
        awk '/Entering directory/ { n = 0 } { line[n++] = $0 }
             END { for (i = n > 25 ? n - 25 : 0; i < n; i++) print line[i] }' "$log" >&2
        fail "$what failed; all of it is in $log"
    fi
}

# Whether the last good build was of this tree with this toolkit, and nothing is newer. 20 ms, where ninja needs 200.
setup_is_current() {
    [ -x "$build/harness/kbench" ] && [ -e "$build/setup.built" ] || return 1
    [ "$(cat "$build/setup.configured" 2>/dev/null)" = "$root|$nvcc" ] || return 1
    [ -z "${KBENCH_MESON:-}" ] || [ "$KBENCH_MESON" = "$(cat "$build/setup.options")" ] || return 1
    [ -z "$(find "$root/meson.build" "$root/meson_options.txt" "$root/reference" "$root/kernels" "$root/harness" "$root/decode" \
        "$root/tools" "$root/.git/logs/HEAD" "$build/meson-private/coredata.dat" -newer "$build/setup.built" 2>/dev/null |
        head -n 1)" ]
}

# Configures anew: another toolkit, other options, or a first time. Options once given in KBENCH_MESON stay.
setup_configure() {
    setup_choose_engine
    setup_packages
    options=${KBENCH_MESON:-$(cat "$build/setup.options" 2>/dev/null || :)}
    note "building in $build (first time; log: $log)"
    # Only what a build makes: the folder may be anybody's.
    (cd "$build" && rm -rf meson-* build.ninja .ninja_* compile_commands.json reference kernels harness \
        decode tests sanitized setup.[bcot]*)
    # shellcheck disable=SC2086
    run_logged 'configuring' meson setup "$build" "$root" -Dgpu=$gpu $options
    grep -q '^ *cuda engine *: YES' "$log" && engines='cuda and host engines' || engines='host engine'
    printf '%s\n' "$options" >"$build/setup.options"
    printf '%s|%s\n' "$root" "$nvcc" >"$build/setup.configured"
    [ "$for_tests" = no ] || : >"$build/setup.tests"
}

# setup_build TARGET...: configures where needed and builds.
setup_build() {
    configured=$(cat "$build/setup.configured" 2>/dev/null || :)
    if [ -n "$configured" ] && [ "${configured%|*}" != "$root" ]; then
        [ "$build" = "$root/build" ] ||
            fail "the build folder $build belongs to ${configured%|*}; set KBENCH_BUILD to another folder"
        note "the tree has moved: building anew"
    fi
    began=$(date +%s)
    : >"$log"
    engines=
    if [ ! -f "$build/build.ninja" ] || [ "$configured" != "$root|$nvcc" ] ||
        { [ -n "${KBENCH_MESON:-}" ] && [ "$KBENCH_MESON" != "$(cat "$build/setup.options")" ]; }; then
        setup_configure
    elif [ "$for_tests" = yes ] && [ ! -e "$build/setup.tests" ]; then   # configured by ./kbench, perhaps without cmocka
        setup_packages
        run_logged 'configuring for tests' meson setup --reconfigure "$build" "$root"
        : >"$build/setup.tests"
    fi
    touch "$build/setup.began"
    run_logged 'building' ninja -C "$build" "$@"
    mv "$build/setup.began" "$build/setup.built"   # as old as the start: what was edited meanwhile is newer
    [ -z "$engines" ] || note "built in $(($(date +%s) - began)) s: $engines"
}

# One build at a time in a folder.
setup_lock() {
    command -v flock >/dev/null || return 0
    exec 9>"$build/setup.lock"
    flock 9
}
setup_unlock() { exec 9>&-; }
