#!/usr/bin/env python3
"""Writes a C header with a hash of each kernel's machine code, taken from the objects of its static library.

usage: code_hash.py OUTPUT NAME,NAME,... LIBRARY...

Only executable sections count (.text of host objects, .text.* of the cubins inside a fat binary), with the section names and
in file order, so that debug lines, paths and time stamps don't change the hash. CUDA objects must hold uncompressed cubins.
"""
import hashlib
import struct
import subprocess
import sys

EM_CUDA = 190
SHF_EXECINSTR = 4


def sections(blob, base):
    """Yields (name, flags, bytes) of the ELF64 image at base; nothing where it is none."""
    if blob[base + 4] != 2:
        return
    offset, = struct.unpack_from("<Q", blob, base + 40)
    size, count, names = struct.unpack_from("<HHH", blob, base + 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", blob, base + offset + i * size) for i in range(count)]
    if names >= count:
        return
    strings = base + headers[names][4]
    for header in headers:
        end = blob.index(b"\0", strings + header[0])
        name = blob[strings + header[0]:end]
        kind, flags, start, length = header[1], header[2], header[4], header[5]
        yield name, flags, b"" if kind == 8 else blob[base + start:base + start + length]


def images(blob):
    """Offsets of the cubins inside an object, or of the object itself where it holds none."""
    found, at = [], blob.find(b"\x7fELF", 4)
    while at >= 0:
        if struct.unpack_from("<H", blob, at + 18)[0] == EM_CUDA:
            found.append(at)
        at = blob.find(b"\x7fELF", at + 4)
    return found or [0]


def code_hash(library):
    digest = hashlib.sha256()
    members = subprocess.run(["ar", "t", library], capture_output=True, text=True, check=True).stdout.split("\n")
    for member in filter(None, members):
        try:
            with open(member, "rb") as file:      # thin archives name paths
                blob = file.read()
        except OSError:
            blob = subprocess.run(["ar", "p", library, member], capture_output=True, check=True).stdout
        for base in images(blob):
            for name, flags, code in sections(blob, base):
                if flags & SHF_EXECINSTR or name.startswith(b".text"):
                    digest.update(name.split(b"_GLOBAL__N__")[0] + b"\0" + code)
    return digest.hexdigest()[:16]


def main():
    output, names, libraries = sys.argv[1], sys.argv[2].split(","), sys.argv[3:]
    with open(output, "w", encoding="ascii") as file:
        for name, library in zip(names, libraries):
            symbol = "".join(c if c.isalnum() else "_" for c in name)
            file.write(f'#define HASH_{symbol} "{code_hash(library)}"\n')


main()
