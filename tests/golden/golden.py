"""What the golden tests compare with: files of digests and exact values, made
by the engine as it was before its architecture was redrawn.

A difference means that a saved run would go on with other batches, or that a
result changed. `python NAME_test.py --write` makes a file again: only for a
change that is meant, told in CHANGELOG.md, program_test.py (under
tools/with_postgres) before package_test.py.
"""
import hashlib
import json
import pathlib
import sys
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent
WRITE = "--write" in sys.argv
POSTGRES = "postgres: "  # before the names of what differs there


def digest(data):
    """128 bits of SHA-256 of bytes, or of a value as JSON."""
    if not isinstance(data, bytes):
        data = json.dumps(data).encode()
    return hashlib.sha256(data).hexdigest()[:32]


def batches_entry(lines):
    """What is kept of an epoch; a line as `penstock batch` prints it."""
    return {"steps": len(lines),
            "first": lines[0]["keys"][:4] if lines else [],
            "keys": digest([line["keys"] for line in lines]),
            "order": digest([line["order_digest"] for line in lines]),
            "bytes": digest([line["bytes_digest"] for line in lines])}


def rows_entries(dataset, statistics):
    """What is kept of a report's "dataset", and of the statistics: float64 as
    hexadecimal digits, which tell every bit."""
    def exact(column):
        return {name: float(value).hex()
                if name in ("mean", "deviation", "divisor") else value
                for name, value in column.items()}
    counts = "rows", "train", "val", "left_out"
    return {"rows": {name: dataset[name] for name in counts},
            "fingerprint": dataset["fingerprint"],
            "statistics": {field: {name: exact(column) if isinstance(
                column, dict) else column for name, column in columns.items()}
                           for field, columns in statistics.items()}}


class Golden:
    """One file: name -> what was found under it."""

    def __init__(self, file, read_only=False):
        self._path = FOLDER / file
        self._write = WRITE and not read_only
        self._known = (json.loads(self._path.read_text())
                       if self._path.exists() else {})
        self._seen = {}

    def __getitem__(self, name):
        return (self._seen if self._write else self._known)[name]

    def check(self, test, name, found):
        """The same as in the file, and as before in this run."""
        found = json.loads(json.dumps(found))
        if self._write:
            test.assertEqual(self._seen.setdefault(name, found), found, name)
        else:
            self._seen[name] = found
            test.assertEqual(found, self._known.get(name), name)

    def check_names(self, test, name, found):
        """All names of the file are still there; more may come."""
        if not self._write:
            found = found & set(self._known.get(name, found))
        self.check(test, name, sorted(found))

    def finish(self, without=None):
        """Writes the file, or says what of it nobody asked for. Entries whose
        names begin with `without` could not be looked at, and stay."""
        left = {name: entry for name, entry in self._known.items()
                if name not in self._seen}
        kept = {name: entry for name, entry in left.items()
                if without and name.startswith(without)}
        if self._write:
            lines = (f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry
                     in sorted({**kept, **self._seen}.items()))
            self._path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        elif len(sys.argv) == 1 and len(left) > len(kept):
            raise AssertionError(f"nothing makes {sorted(left - kept.keys())} "
                                 f"of {self._path.name}")


def main():
    unittest.main(argv=[word for word in sys.argv if word != "--write"])
