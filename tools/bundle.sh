# kbench bundle [--force] [FILE]: a tarball that runs on a node with nothing but a driver. Sourced by ./kbench.
# shellcheck shell=sh disable=SC2154

force=no
[ "${1:-}" != --force ] || { force=yes; shift; }
case ${1:-} in -*) note "bundle: unknown option '$1'; usage: kbench bundle [--force] [FILE]"; exit 2 ;; esac
version=$("$build/harness/kbench" --version | sed 's/.* //')
name=kbench-$version-$(uname -m)
file=${1:-$name.tar.gz}
[ ! -e "$file" ] || [ "$force" = yes ] || { note "bundle: $file exists; --force overwrites it"; exit 2; }

# The planted kernels travel too: they show on the node itself that wrong kernels are caught there.
setup_lock
log=$build/setup.log
: >"$log"
run_logged 'building the planted kernels' ninja -C "$build" planted
setup_unlock

stage=$(mktemp -d "$build/bundle.XXXXXX")
trap 'rm -rf "$stage"' EXIT
top=$stage/$name
mkdir -p "$top/bin" "$top/fallback" "$top/planted/cuda" "$top/tests/harness"
cp "$build/harness/kbench" "$top/bin/"
# cJSON lies beside the program. The compiler's runtimes (OpenMP, C++) are for nodes without: elsewhere the node's own are as new as
# its plug-ins need. The C library is the node's.
ldd "$build/harness/kbench" | sed -n 's/.* => \(\/[^ ]*\).*/\1/p' | while IFS= read -r library; do
    case $library in
    */libcjson.so*) cp -L "$library" "$top/bin/" ;;
    */libc.so* | */libm.so* | */libdl.so* | */libpthread.so* | */librt.so*) ;;
    *) cp -L "$library" "$top/fallback/" ;;
    esac
done
cp "$build"/tests/planted/*.so "$top/planted/"
cp "$build"/tests/planted/cuda/*.so "$top/planted/cuda/" 2>/dev/null || rmdir "$top/planted/cuda"
if [ -x "$build/tests/planted/cuda/neighbour" ]; then
    cp "$build/tests/planted/cuda/neighbour" "$build/tests/planted/cuda/waits" "$top/planted/cuda/"
    mkdir -p "$top/tests/gpu"
    cp "$root"/tests/gpu/*.py "$root"/tests/gpu/*.csv "$top/tests/gpu/"
fi
find "$top/planted" -name '*.so' -exec strip --strip-unneeded {} +
cp "$root/tests/gpu.sh" "$top/tests/"
cp "$root/tests/harness/planted.py" "$top/tests/harness/"
cp -r "$root/sweeps" "$root/gates" "$root/plots" "$root/LICENSE" "$top/"
cat >"$top/kbench" <<'END'
#!/bin/sh
# kbench from a bundle: nothing to build, nothing to install.
KBENCH_ROOT=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
export KBENCH_ROOT
if ! "$KBENCH_ROOT/bin/kbench" --version >/dev/null 2>&1; then
    LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$KBENCH_ROOT/fallback
    export LD_LIBRARY_PATH
fi
exec "$KBENCH_ROOT/bin/kbench" "$@"
END
chmod +x "$top/kbench"

mkdir -p "$(dirname "$file")"
tar -C "$stage" -czf "$file.part" "$name" || { note "bundle: can't write $file"; exit 5; }
mv "$file.part" "$file"
printf '%s\n' "$file"
note "unpack it anywhere and run $name/kbench; on a machine with a GPU, $name/tests/gpu.sh tests it"
