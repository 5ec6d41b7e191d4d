#!/usr/bin/env python3
"""The launcher in a copy of the tree: first build, later calls, one more kernel, a tree that can't be written, missing packages."""
import os
import shutil
import subprocess
import time

from common import SOURCE, TINY, Skip, environment, expect, expect_exit, in_own_mounts, main


def copy_tree(folder):
    tree = os.path.join(folder, "tree")
    skip = shutil.ignore_patterns(".git", "build*", "results", "*.so", "*.gz", ".*")
    shutil.copytree(SOURCE, tree, ignore=skip, symlinks=True)
    return tree


def launch(tree, *words, **more):
    """Without CUDA, to build in seconds; KBENCH_ROOT and the like are the launcher's to set."""
    env = environment(KBENCH_ROOT=None, KBENCH_INSTALL="no", KBENCH_MESON="-Dgpu=disabled", **more)
    began = time.monotonic()
    done = subprocess.run([os.path.join(tree, "kbench"), *words], env=env, capture_output=True, text=True, timeout=300,
                          stdin=subprocess.DEVNULL, check=False)
    return done, time.monotonic() - began


def one_more_kernel(folder):
    """A copy of a kernel under a new name costs one file and one line."""
    tree = copy_tree(folder)
    done, _ = launch(tree, "list", "kernels")
    expect_exit(done, 0)
    expect(len(done.stderr.splitlines()) <= 6, "a first build says too much", done)
    expect("attn/host_mma" in done.stdout, "data is missing on stdout", done)

    done, _ = launch(tree, "list", "kernels")
    expect_exit(done, 0)
    expect(not done.stderr, "a later call talks", done)
    quickest = min(launch(tree, "--version")[1] for _ in range(10))     # of ten: others may use the machine too
    expect(quickest < 0.3, f"a later call takes {quickest:.2f} s")

    shutil.copy(os.path.join(tree, "kernels/attn/host_mma.c"), os.path.join(tree, "kernels/attn/host_copy.c"))
    table = os.path.join(tree, "kernels/meson.build")
    with open(table, encoding="utf-8") as file:
        text = file.read()
    with open(table, "w", encoding="utf-8") as file:
        file.write(text.replace("  'attn/host_mma': ['host'],\n", "  'attn/host_copy': ['host'],\n  'attn/host_mma': ['host'],\n"))
    done, _ = launch(tree, "check", *TINY, "-k", "attn/host_copy")
    expect_exit(done, 0)
    expect("attn/host_copy" in done.stdout, "the copy is not on the screen", done)


def moved_and_read_only(folder):
    """A tree that moves builds anew; one that can't be written builds in the user's cache."""
    tree = copy_tree(folder)
    cache = os.path.join(folder, "cache")
    env = environment(KBENCH_ROOT=None, KBENCH_INSTALL="no", KBENCH_MESON="-Dgpu=disabled", XDG_CACHE_HOME=cache)
    done = in_own_mounts('mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && exec "$1/kbench" --version', tree, env=env)
    expect_exit(done, 0)
    in_cache = not os.path.exists(os.path.join(tree, "build")) and os.listdir(os.path.join(cache, "kbench"))
    expect(in_cache, "not built in the cache", done)


def other_folder(folder):
    """KBENCH_BUILD is honoured, and a folder that another tree has built in is refused."""
    tree = copy_tree(folder)
    build = os.path.join(folder, "elsewhere")
    done, _ = launch(tree, "--version", KBENCH_BUILD=build)
    expect_exit(done, 0)
    there = not os.path.exists(os.path.join(tree, "build")) and os.path.exists(os.path.join(build, "harness/kbench"))
    expect(there, "not built where KBENCH_BUILD says", done)
    os.rename(tree, tree + "2")
    done, _ = launch(tree + "2", "--version", KBENCH_BUILD=build)
    expect_exit(done, 5)
    expect("belongs to" in done.stderr and "KBENCH_BUILD" in done.stderr, "not said why", done)


def missing_packages(folder):
    """Without meson and ninja: the one line that installs them, nothing installed, exit 5."""
    tree = copy_tree(folder)
    programs = os.path.join(folder, "bin")
    os.makedirs(programs)
    for source in ("/usr/bin", "/bin"):
        for name in os.listdir(source):
            path = os.path.join(programs, name)
            if name not in ("meson", "ninja", "samu", "gnuplot") and not os.path.lexists(path):
                os.symlink(os.path.join(source, name), path)
    if not os.path.exists("/etc/debian_version"):
        raise Skip("the package line is Debian's and Ubuntu's")
    done, _ = launch(tree, "--version", PATH=programs)
    expect_exit(done, 5)
    expect("apt-get install -y --no-install-recommends meson ninja-build gnuplot-nox" in done.stderr, "not the package line", done)
    expect(not done.stdout, "talk on stdout", done)


def broken_source(folder):
    """A build that fails shows the compiler's words and where the log is."""
    tree = copy_tree(folder)
    with open(os.path.join(tree, "harness/main.c"), "a", encoding="utf-8") as file:
        file.write("this is no C\n")
    done, _ = launch(tree, "--version")
    expect_exit(done, 5)
    expect("main.c" in done.stderr and "setup.log" in done.stderr, "not said what failed", done)


main(one_more_kernel, moved_and_read_only, other_folder, missing_packages, broken_source)
