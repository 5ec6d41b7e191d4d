"""Walks the machine code inside the objects of static libraries: ELF images, their sections, and of cubins the kernel functions."""
import struct
import subprocess

EM_CUDA = 190
SHF_EXECINSTR = 4
NOBITS = 8


def objects(library):
    """The bytes of each object of a static library."""
    members = subprocess.run(["ar", "t", library], capture_output=True, text=True, check=True).stdout.split("\n")
    for member in filter(None, members):
        try:
            with open(member, "rb") as file:      # thin archives name paths
                yield file.read()
        except OSError:
            yield subprocess.run(["ar", "p", library, member], capture_output=True, check=True).stdout


def sections(blob, base):
    """Yields (name, flags, bytes, size) of the ELF64 image at base; nothing where it is none. Without bytes in the file: b""."""
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
        yield name, flags, b"" if kind == NOBITS else blob[base + start:base + start + length], length


def cubins(blob):
    """Offsets of the cubins inside an object; they must not be compressed."""
    found, at = [], blob.find(b"\x7fELF", 4)
    while at >= 0:
        if struct.unpack_from("<H", blob, at + 18)[0] == EM_CUDA:
            found.append(at)
        at = blob.find(b"\x7fELF", at + 4)
    return found


def architecture(blob, base):
    """90 of a cubin for sm_90 or sm_90a. The byte moved with the second version of the file's flags."""
    flags, = struct.unpack_from("<I", blob, base + 48)
    return (flags >> 8 if blob[base + 8] >= 8 else flags) & 0xff


def plain_name(name):
    """Without what the compiler makes of the file's path, which differs from build to build."""
    return name.split(b"_GLOBAL__N__")[0]
