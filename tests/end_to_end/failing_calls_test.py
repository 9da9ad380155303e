"""The k-th call of a kind fails, once or from then on, while rows are scanned,
spilled, stored, mapped, checked and removed. What must hold: the right bytes, or an
error with a name; afterwards the same command without faults needs no help, gives
the same bytes, and leaves nothing in the cache folder that is not its own.

PENSTOCK_FAILING_CALLS is the library that makes calls fail. PENSTOCK_TEST_POINTS
says how many points of each command are tried, spread over its calls (80; 0: every
one, as `./check --faults` does).
"""
import errno
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import unittest

from penstock_cli import PROGRAM, RESULT_OF, Case, has_library, tree_of

LIBRARY = os.environ.get("PENSTOCK_FAILING_CALLS", "build/lib/libfailing_calls.so")
PICTURES = pathlib.Path(__file__).resolve().parents[1] / "data/images"
OWN_LOOP = os.environ.get("PENSTOCK_OWN_LOOP", "build/bin/own_loop")
POINTS = int(os.environ.get("PENSTOCK_TEST_POINTS", "80"))
PATIENCE_S = 60
REASONS = {"open": (errno.EMFILE, errno.EIO), "read": (errno.EIO,),
           "write": (errno.ENOSPC, errno.EIO), "fsync": (errno.EIO,),
           "rename": (errno.ENOSPC, errno.EIO), "mmap": (errno.ENOMEM,),
           "ftruncate": (errno.EIO,), "malloc": (errno.ENOMEM,)}
# Where no memory is left for more than that.
SHORT = "out of memory"
# How glibc ends a program where a thread lacks memory for its own part of a
# library that was loaded on the way: libjpeg has a variable of each thread.
OF_A_THREAD = "cannot allocate memory for thread-local data"


# A symbol that glibc keeps but once for a process (STB_GNU_UNIQUE).
UNIQUE = 10


def bindings_in(library):
    """How the symbols of a library are bound, by the numbers of ELF."""
    data = library.read_bytes()
    sections, = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    for at in range(sections, sections + size * count, size):
        kind, = struct.unpack_from("<I", data, at + 4)
        if kind == 11:  # the symbols that are linked when it is loaded
            first, length = struct.unpack_from("<QQ", data, at + 24)
            return {data[symbol + 4] >> 4
                    for symbol in range(first, first + length, 24)}
    return set()


class Ended:
    """How a command ended."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return f"exit {self.code}\n{self.out[-600:]}\n{self.err[-600:]}"


class FailingCalls(Case):
    def setUp(self):
        super().setUp()
        self.stores = self.folder / "stores"
        self.database(self.rows(300))
        self.write_job(self.job(
            loader={"batch_size": 64, "seed": 3, "cache": "disk", "workers": 2,
                    "cache_dir": "stores"}, device="cpu"))

    # -- commands, each with what it must have said

    def call(self, command, **variables):
        done = subprocess.run(
            [str(word) for word in command], cwd=self.folder, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, timeout=PATIENCE_S, check=False,
            env={**os.environ, **variables})
        # Whether rows were scanned depends on what is there.
        out = "".join(line for line in done.stdout.splitlines(keepends=True)
                      if '"scanned"' not in line)
        return Ended(done.returncode, out, done.stderr)

    def faulty(self, command, **faults):
        return self.call(command, LD_PRELOAD=LIBRARY,
                         **{f"FAIL_{name}": str(value)
                            for name, value in faults.items()})

    def calls_of(self, command):
        """How many calls of each kind it makes."""
        counts = self.folder / "counts"
        ended = self.faulty(command, COUNT=counts)
        self.assertEqual(ended.code, 0, ended)
        return {kind: int(number) for kind, number in
                re.findall(r"(\w+) (\d+)", counts.read_text())}

    def points(self, counts, reasons):
        """(kind, k, reason, from then on): all of them, or a sample in which
        every kind has its share, the first call among it."""
        chance, every = random.Random(1), []
        for kind, why in reasons.items():
            of_kind = [(kind, at, reason, always)
                       for at in range(1, counts[kind] + 1)
                       for reason in why
                       for always in (False, True)]
            share = -(-POINTS // len(reasons)) if POINTS else len(of_kind)
            if len(of_kind) > share:
                of_kind = of_kind[:1] + chance.sample(of_kind[1:], share - 1)
            every += of_kind
        return every

    # -- checks

    def named_error(self, ended, kind):
        """It has ended by an error that a script and a person can use."""
        if kind == "malloc" and ended.code == RESULT_OF["out_of_memory"] \
                and SHORT in ended.out + ended.err:
            return
        if kind == "malloc" and ended.code == 127 and OF_A_THREAD in ended.err:
            return
        try:
            document = json.loads(ended.out)
        except ValueError:
            document = json.loads(ended.out.splitlines()[-1])
        if "stores" in document:  # `cache verify` tells of each store apart
            for store in document["stores"]:
                self.assertTrue(store.get("unusable") or store.get("damaged"))
            self.assertEqual(ended.code, RESULT_OF["source"])
            return
        error = document["error"]
        self.assertEqual(ended.code, RESULT_OF[error["kind"]])
        self.assertNotEqual(error["kind"], "internal")
        for part in ("code", "what", "where", "why", "next"):
            self.assertTrue(error[part], f"'{part}' is empty in {error}")

    def state_of_stores(self):
        """What lies there, but for the names of temporary files."""
        return {re.sub(r"\.tmp\.\w+", ".tmp", name): content
                for name, content in tree_of(self.stores).items()}

    def restore(self, before):
        """Makes the folder hold these files, {name: bytes}."""
        for path in self.stores.glob("*"):
            if path.name not in before:
                path.unlink()
        self.stores.mkdir(exist_ok=True)
        for name, content in before.items():
            path = self.stores / name
            if not path.exists() or path.read_bytes() != content:
                path.write_bytes(content)

    def files(self):
        return {path.name: path.read_bytes()
                for path in self.stores.glob("*")}

    def campaign(self, command, expected=None, reasons=None):
        """Runs a command with each fault, from the folder in its present state."""
        before = self.files()
        first = self.call(command)
        self.assertEqual(first.code, 0, first)
        expected = expected or first.out
        after = self.files()
        self.restore(before)
        counts = self.calls_of(command)
        sound = {}  # folders from which a run without faults went well
        failed = 0
        for kind, at, reason, always in self.points(counts, reasons or REASONS):
            self.restore(before)
            point = f"{kind} {at} of {counts[kind]}, " \
                    f"{errno.errorcode[reason]}, " \
                    f"{'from then on' if always else 'once'}"
            with self.subTest(command=command[1], point=point):
                faults = {"CALL": kind, "AT": at, "WITH": reason}
                if always:
                    faults["ALWAYS"] = 1
                ended = self.faulty(command, **faults)
                try:
                    if ended.code == 0:
                        self.assertEqual(ended.out, expected)
                    else:
                        self.named_error(ended, kind)
                        failed += 1
                    left = json.dumps(self.state_of_stores())
                    self.assertFalse(
                        [name for name in self.files() if ".tmp." in name])
                    if left not in sound:
                        plain = self.call(command)
                        self.assertEqual((plain.code, plain.out), (0, expected),
                                         plain)
                        self.assertEqual(self.files(), after)
                        sound[left] = True
                except (AssertionError, LookupError, ValueError) as error:
                    raise AssertionError(f"{point}: {error}\n{ended}") \
                        from error
        self.assertGreater(failed, 0)

    def test_no_plugin_needs_memory_that_the_loader_cannot_lack(self):
        # glibc ends a process that has none for such a symbol.
        plugins = list((pathlib.Path(PROGRAM).resolve().parents[1] /
                        "lib/penstock").glob("libpenstock_*.so"))
        self.assertTrue(plugins)
        for plugin in plugins:
            self.assertNotIn(UNIQUE, bindings_in(plugin), plugin.name)

    # -- what is done while calls fail

    def read_all(self):
        return [PROGRAM, "batch", "job.json", "--steps", "0:9", "--json"]

    def test_while_a_store_is_written(self):
        self.campaign(self.read_all())

    def test_while_a_store_is_opened_and_its_rows_are_read(self):
        ended = self.call(self.read_all())
        self.assertEqual(ended.code, 0, ended)
        self.campaign(self.read_all(), ended.out)

    def test_while_rows_are_copied_out_of_a_store(self):
        ended = self.call(self.read_all())
        self.campaign([*self.read_all(), "--set", "loader.cache=ram"],
                      ended.out)

    def test_while_rows_are_read_from_their_source(self):
        ended = self.call(self.read_all())
        self.restore({})
        self.campaign([*self.read_all(), "--set", "loader.cache=none"],
                      ended.out)

    def test_while_a_store_is_verified(self):
        self.call(self.read_all())
        # When it was last used is no part of what is compared.
        self.campaign([PROGRAM, "cache", "verify", "--dir", "stores",
                       "--json"])

    @unittest.skipUnless(has_library("penstock_source_text"),
                         "built without zlib or zstd")
    def test_while_lines_of_json_are_parsed(self):
        # None of them is bad, and lack of memory makes none so.
        (self.folder / "rows.jsonl").write_text("".join(
            json.dumps({"id": i, "y": i / 2}) + "\n" for i in range(300)))
        self.write_job(self.job(
            source={"kind": "jsonl", "path": "rows.jsonl", "on_bad": "skip"},
            fields={"y": {"columns": ["y"]}},
            loader={"batch_size": 64, "seed": 3, "cache": "ram", "workers": 2},
            device="cpu"))
        self.campaign(self.read_all(), reasons={"malloc": (errno.ENOMEM,)})

    @unittest.skipUnless(has_library("penstock_images"),
                         "built without libjpeg, libpng or libwebp")
    def test_while_pictures_are_decoded(self):
        # None of them is bad, and what the process lacks makes none so.
        of_class = self.folder / "pictures/all"
        of_class.mkdir(parents=True)
        for pattern in ("rgb.png", "4*.jpg", "lossy.webp"):
            for path in PICTURES.glob(pattern):
                shutil.copy(path, of_class)
        job = self.job(
            source={"kind": "images", "path": "pictures"},
            fields={"x": {"image": {"size": [10, 12], "resize": 16,
                                    "train": "random_resized_crop"}}},
            loader={"batch_size": 8, "seed": 3, "cache": "none", "workers": 2,
                    "on_bad": "substitute"}, device="cpu")
        self.write_job(job)
        self.campaign(self.read_all(), reasons={
            "malloc": (errno.ENOMEM,), "open": (errno.EMFILE,)})
        # A file that cannot be read is bad.
        job["loader"]["on_bad"] = "stop"
        self.write_job(job)
        self.campaign(self.read_all(), reasons={
            "read": (errno.EIO,), "open": (errno.EIO,)})

    def test_while_values_are_spilled(self):
        self.database(self.rows(6000), name="many.sqlite")
        self.write_job(self.job(
            source={"kind": "sqlite", "path": "many.sqlite", "table": "t"},
            loader={"batch_size": 512, "seed": 3, "workers": 2,
                    "cache": "disk", "cache_dir": "stores"}, device="cpu"))
        whole = self.call([OWN_LOOP, "job.json"])
        os.environ["SCAN_BYTES"] = "450000"
        self.addCleanup(os.environ.pop, "SCAN_BYTES")
        self.restore({})
        done = subprocess.run([OWN_LOOP, "job.json"], cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=True)
        self.assertGreater(json.loads(done.stdout.splitlines()[0])["spilled"],
                           0)
        self.restore({})
        self.campaign([OWN_LOOP, "job.json"], whole.out)


if __name__ == "__main__":
    unittest.main()
