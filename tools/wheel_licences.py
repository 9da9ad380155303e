#!/usr/bin/env python3
"""Puts the licences of the libraries inside into a wheel.

    tools/wheel_licences.py WHEEL COMPILED_IN...

For every library that auditwheel bundled, and for every Debian package named
COMPILED_IN (headers, of which the program is made): what Debian's package says
about its copyright, as <wheel>.dist-info/licenses/bundled/PACKAGE_VERSION.txt,
with the licences that it refers to. Needs `wheel` and dpkg; the wheel is
written again in its place.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

from wheel_contents import Contents

COMMON = pathlib.Path("/usr/share/common-licenses")


def said_by(*command):
    return subprocess.run(command, check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def package_of(library):
    """The Debian package of a library: 'libpq5' of libpq.so.5.15."""
    found = said_by("dpkg-query", "--search", "*/" + library).splitlines()
    packages = {line.split(":")[0] for line in found
                if line.endswith("/" + library)}
    if len(packages) != 1:
        sys.exit(f"no licence for {library}: it is in the packages "
                 f"{sorted(packages)}, expected is one")
    return packages.pop()


def add_licences(wheel, compiled_in):
    packages = {package_of(binary.plain_name)
                for binary in Contents(wheel).bundled()}
    with tempfile.TemporaryDirectory() as work:
        said_by(sys.executable, "-m", "wheel", "unpack", "-d", work, wheel)
        (folder,) = pathlib.Path(work).glob("*/*.dist-info")
        licences = folder / "licenses" / "bundled"
        licences.mkdir(parents=True)
        common = set()
        for package in sorted(packages | set(compiled_in)):
            text = pathlib.Path("/usr/share/doc", package,
                                "copyright").read_text(encoding="utf-8")
            version = said_by("dpkg-query", "--show", "--showformat",
                              "${Version}", package).replace(":", "_")
            (licences / f"{package}_{version}.txt").write_text(
                text, encoding="utf-8")
            common |= set(re.findall(
                rf"{COMMON}/([A-Za-z0-9.+-]*[A-Za-z0-9])", text))
        for name in sorted(common):
            (licences / f"{name}.txt").write_bytes((COMMON / name).read_bytes())
        said_by(sys.executable, "-m", "wheel", "pack", "-d",
                str(pathlib.Path(wheel).parent), str(folder.parent))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    add_licences(sys.argv[1], sys.argv[2:])
