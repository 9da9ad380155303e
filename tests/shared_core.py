"""Looks into libpenstock_core.so and what is linked to it.

    shared_core.py OBJDUMP CORE LIBRARY...

- The core shows nothing but namespace penstock: what it compiled of other
  libraries' templates stays inside, where it cannot be taken for another copy.
- No data that can change, and no guard of a static variable, is both in the core
  and in a library: each would see a value of its own.
- A library that carries the CUDA runtime keeps it to itself: libtorch has one,
  too.
"""

import re
import subprocess
import sys

OURS = re.compile(r"_Z(N|NK|TVN|TTN|TIN|TSN|GVN)8penstock")


def symbols(objdump, library, table):
    """The section of each symbol that the library defines."""
    lines = subprocess.run([objdump, table, library], check=True,
                           capture_output=True, text=True).stdout.splitlines()
    found = {}
    for line in lines:
        place, _, name = line.partition("\t")
        if name and (section := place.split()[-1]) != "*UND*":
            found[name.split()[-1]] = section
    return found


def changes(name, section):
    """Whether it is a value of ours that the program changes."""
    return name.startswith("_Z") and "8penstock" in name and \
        section in (".data", ".bss", ".tdata", ".tbss")


def main(objdump, core, *libraries):
    bad = [f"{core} shows {name}" for name in symbols(objdump, core, "-T")
           if not OURS.match(name)]
    ours = {name for name, section in symbols(objdump, core, "-t").items()
            if changes(name, section)}
    for library in libraries:
        bad += [f"{name} is in the core and in {library}"
                for name, section in symbols(objdump, library, "-t").items()
                if name in ours and changes(name, section)]
        bad += [f"{library} shows {name}, which may be taken for libtorch's"
                for name in symbols(objdump, library, "-T")
                if re.match("cuda[A-Z]", name)]
    print("\n".join(bad[:20]) or
          f"{len(ours)} values, {len(libraries)} libraries looked at")
    return bool(bad) or not ours


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
