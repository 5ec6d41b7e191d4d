#!/usr/bin/env python3
"""Prints the include folders of the toolkit that an nvcc belongs to, one a line, as nvcc itself would pass them.

usage: cuda_include.py NVCC
"""
import shlex
import subprocess
import sys


def main():
    dry = subprocess.run([sys.argv[1], "--dryrun", "-c", "-x", "cu", "/dev/null"], capture_output=True, text=True,
        check=False).stderr
    for line in dry.splitlines():
        if line.startswith("#$ INCLUDES="):
            for word in shlex.split(line[len("#$ INCLUDES="):]):
                for flag in shlex.split(word):
                    if flag.startswith("-I"):
                        print(flag[2:])


main()
