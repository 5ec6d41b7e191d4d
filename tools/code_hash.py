#!/usr/bin/env python3
"""Writes a C header with hashes of each kernel's machine code, taken from the objects of its static library.

usage: code_hash.py OUTPUT SM,SM,... NAME,NAME,... LIBRARY...

HASH_<kernel> is over all architectures, HASHES_<kernel> has each alone, "90a:<hash>,120a:<hash>", "" of host code: what a run on
one of them measured is the same in builds with and without the others. Host objects of the library count for each.

Only executable sections count (.text of host objects, .text.* of the cubins inside a fat binary), with the section names and
in file order, so that debug lines, paths and time stamps don't change the hash. CUDA objects must hold uncompressed cubins.
"""
import hashlib
import sys

sys.dont_write_bytecode = True
import cubins    # noqa: E402


def pieces(library):
    """(architecture, bytes) of each executable section, in file order; None: host code."""
    for blob in cubins.objects(library):
        found = cubins.cubins(blob)
        for base in found or [0]:
            for name, flags, code, _ in cubins.sections(blob, base):
                if flags & cubins.SHF_EXECINSTR or name.startswith(b".text"):
                    yield cubins.architecture(blob, base) if found else None, cubins.plain_name(name) + b"\0" + code


def hash_of(code):
    return hashlib.sha256(b"".join(code)).hexdigest()[:16]


def code_hashes(library, sms):
    """The hash over all architectures, and that of each which the library has, in the order of sms."""
    found = list(pieces(library))
    number = {sm: int(sm.rstrip("af")) for sm in sms}
    unknown = {of for of, _ in found} - {None, *number.values()}
    if unknown:
        sys.exit(f"{library}: machine code for {sorted(unknown)}, which is none of {', '.join(sms)}")
    return hash_of(code for _, code in found), {
        sm: hash_of(code for of, code in found if of in (None, number[sm])) for sm in sms if number[sm] in {of for of, _ in found}}


def main():
    output, sms, names, libraries = sys.argv[1], [sm for sm in sys.argv[2].split(",") if sm], sys.argv[3].split(","), sys.argv[4:]
    with open(output, "w", encoding="ascii") as file:
        for name, library in zip(names, libraries):
            symbol = "".join(c if c.isalnum() else "_" for c in name)
            whole, alone = code_hashes(library, sms)
            file.write(f'#define HASH_{symbol} "{whole}"\n')
            file.write(f'#define HASHES_{symbol} "{",".join(f"{sm}:{code}" for sm, code in alone.items())}"\n')


if __name__ == "__main__":
    main()
