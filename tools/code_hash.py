#!/usr/bin/env python3
"""Writes a C header with a hash of each kernel's machine code, taken from the objects of its static library.

usage: code_hash.py OUTPUT NAME,NAME,... LIBRARY...

Only executable sections count (.text of host objects, .text.* of the cubins inside a fat binary), with the section names and
in file order, so that debug lines, paths and time stamps don't change the hash. CUDA objects must hold uncompressed cubins.
"""
import hashlib
import sys

sys.dont_write_bytecode = True
import cubins    # noqa: E402


def code_hash(library):
    digest = hashlib.sha256()
    for blob in cubins.objects(library):
        for base in cubins.cubins(blob) or [0]:
            for name, flags, code, _ in cubins.sections(blob, base):
                if flags & cubins.SHF_EXECINSTR or name.startswith(b".text"):
                    digest.update(cubins.plain_name(name) + b"\0" + code)
    return digest.hexdigest()[:16]


def main():
    output, names, libraries = sys.argv[1], sys.argv[2].split(","), sys.argv[3:]
    with open(output, "w", encoding="ascii") as file:
        for name, library in zip(names, libraries):
            symbol = "".join(c if c.isalnum() else "_" for c in name)
            file.write(f'#define HASH_{symbol} "{code_hash(library)}"\n')


main()
