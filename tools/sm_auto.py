#!/usr/bin/env python3
"""Prints the architectures to build for: the device's own where there is one, else 90a and 120a, cut to what nvcc knows.

usage: sm_auto.py NVCC_VERSION
"""
import subprocess
import sys

# Where the architecture-specific ("a") code is what the kernels want; older ones have the plain name.
SPECIFIC = {90, 100, 103, 120, 121}
FIRST_TOOLKIT = {100: (12, 8), 103: (12, 9), 120: (12, 8), 121: (12, 9)}


def devices():
    query = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    try:
        lines = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True).stdout.split()
    except (OSError, subprocess.SubprocessError):
        return []
    return sorted({int(line.replace(".", "")) for line in lines if line.replace(".", "").isdigit()})


def main():
    toolkit = tuple(int(part) for part in sys.argv[1].split(".")[:2])
    found = devices() or [90, 120]
    known = [sm for sm in found if toolkit >= FIRST_TOOLKIT.get(sm, (0, 0)) and sm >= 80]
    print(",".join(f"{sm}a" if sm in SPECIFIC else str(sm) for sm in known or [90]))


main()
