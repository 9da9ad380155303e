#!/usr/bin/env python3
"""What a wheel holds: sizes, who brings which library, the oldest system.

    tools/wheel_contents.py WHEEL    prints it; needs pyelftools

tools/make_wheel prints it, and tests/wheel/contents.py checks it.
"""
import dataclasses
import io
import pathlib
import re
import sys
import zipfile

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

LIBRARIES = "penstock.libs/"
# Every system has them: what a manylinux wheel may need beside what it holds.
SYSTEM = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1",
          "libdl.so.2", "libpthread.so.0", "librt.so.1", "libresolv.so.2",
          "ld-linux-x86-64.so.2", "libz.so.1"}


@dataclasses.dataclass
class Binary:
    """A program or a library in the wheel."""
    path: str
    bytes: bytes
    needs: list[str]            # names of libraries
    search: list[str]           # its run path
    versions: dict[str, tuple]  # "GLIBC" -> (2, 34), the newest that it needs

    @property
    def name(self):
        return pathlib.PurePosixPath(self.path).name

    @property
    def plain_name(self):
        """As the system calls it, without what auditwheel put in."""
        return re.sub(r"-[0-9a-f]{8}(?=\.)|-[0-9a-f]{8}$", "", self.name, 1)


def read_binary(path, content):
    elf = ELFFile(io.BytesIO(content))
    needs, search, versions = [], [], {}
    for section in elf.iter_sections():
        if isinstance(section, DynamicSection):
            for tag in section.iter_tags():
                if tag.entry.d_tag == "DT_NEEDED":
                    needs.append(tag.needed)
                elif tag.entry.d_tag == "DT_RUNPATH":
                    search += tag.runpath.split(":")
                elif tag.entry.d_tag == "DT_RPATH":
                    search += tag.rpath.split(":")
        elif isinstance(section, GNUVerNeedSection):
            for _, names in section.iter_versions():
                for found in names:
                    kind, _, number = found.name.partition("_")
                    if re.fullmatch(r"[0-9.]+", number):
                        number = tuple(map(int, number.split(".")))
                        versions[kind] = max(versions.get(kind, ()), number)
    return Binary(path, content, needs, search, versions)


class Contents:
    def __init__(self, wheel):
        self.wheel = pathlib.Path(wheel)
        self.binaries, self.packed, self.unpacked = {}, {}, {}
        with zipfile.ZipFile(wheel) as opened:
            for entry in opened.infolist():
                self.packed[entry.filename] = entry.compress_size
                self.unpacked[entry.filename] = entry.file_size
                content = opened.read(entry)
                if content.startswith(b"\x7fELF"):
                    self.binaries[entry.filename] = read_binary(
                        entry.filename, content)

    def bundled(self):
        """The libraries of others."""
        return [b for b in self.binaries.values()
                if b.path.startswith(LIBRARIES)]

    def ours(self):
        return [b for b in self.binaries.values() if b not in self.bundled()]

    def brought_by(self, path):
        """Names in LIBRARIES that are loaded with this file, sorted."""
        by_name = {b.name: b for b in self.bundled()}
        found, ahead = set(), [self.binaries[path]]
        while ahead:
            for name in ahead.pop().needs:
                if name in by_name and name not in found:
                    found.add(name)
                    ahead.append(by_name[name])
        return sorted(found)

    def newest_versions(self):
        """kind -> (version, names of the files that need it)."""
        newest = {}
        for binary in self.binaries.values():
            for kind, version in binary.versions.items():
                if version > newest.get(kind, ((), []))[0]:
                    newest[kind] = (version, [])
                if version == newest[kind][0]:
                    newest[kind][1].append(binary.plain_name)
        return newest

    def size_of(self, paths):
        """(packed, unpacked) bytes."""
        paths = list(paths)
        return (sum(self.packed[path] for path in paths),
                sum(self.unpacked[path] for path in paths))

    def rows(self):
        """(what, packed, unpacked), in the order in which they are told."""
        told = set()

        def row(what, paths):
            paths = [path for path in paths if path not in told]
            told.update(paths)
            return (what, *self.size_of(paths))

        for path in sorted(b.path for b in self.ours()):
            yield row(path, [path])
            libraries = [LIBRARIES + name for name in self.brought_by(path)]
            for library in libraries:
                if library not in told:
                    yield row("  + " + self.binaries[library].plain_name,
                              [library])
        rest = [path for path in self.packed if path not in told]
        yield row("Python files and types",
                  [p for p in rest if p.startswith("penstock/")])
        yield row("licences, list of libraries, metadata", rest)


def main():
    contents = Contents(sys.argv[1])
    print(f"{contents.wheel.name}: "
          f"{contents.wheel.stat().st_size / 1e6:.2f} MB")
    print(f"{'packed':>10} {'unpacked':>10}  bytes")
    for what, packed, unpacked in contents.rows():
        print(f"{packed:10,} {unpacked:10,}  {what}")
    for kind, (version, names) in sorted(contents.newest_versions().items()):
        if kind in ("GLIBC", "GLIBCXX", "CXXABI"):
            print(f"{kind}_{'.'.join(map(str, version))}: needed by "
                  f"{len(names)} files, {names[0]} among them")


if __name__ == "__main__":
    main()
