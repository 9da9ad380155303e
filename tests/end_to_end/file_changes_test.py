"""Files that are replaced, rewritten, cut off or deleted while a run reads
them: the batches are those of one version, or the run ends with
files.changed, whatever the kind of the files and wherever rows are kept.
PENSTOCK_TEST_CHANGES says how many tries (30; `./check --faults` makes 300)."""
import json
import os
import random
import shutil
import struct
import subprocess
import time
import unittest
import zlib

from penstock_cli import PATIENCE_S, PROGRAM, Case

TRIES = int(os.environ.get("PENSTOCK_TEST_CHANGES", "30"))
ROWS = 1200
PIPE_BYTES = 4096


def png(value):
    """A picture of 8 x 8 pixels of one colour."""
    def chunk(name, data):
        body = name + data
        return (struct.pack(">I", len(data)) + body
                + struct.pack(">I", zlib.crc32(body)))
    rows = b"".join(b"\0" + bytes([value % 251] * 24) for _ in range(8))
    head = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
            + chunk(b"IDAT", zlib.compress(rows, 0)) + chunk(b"IEND", b""))


def wav(value):
    samples = struct.pack("<64h", *([value % 30000] * 64))
    return (b"RIFF" + struct.pack("<I", 36 + len(samples)) + b"WAVEfmt "
            + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16)
            + b"data" + struct.pack("<I", len(samples)) + samples)


def tar(members):
    archive = b""
    for name, data in members:
        head = bytearray(512)
        head[:len(name)] = name.encode()
        head[100:108] = b"0000644\0"
        head[124:136] = b"%011o\0" % len(data)
        head[148:156] = b" " * 8
        head[156] = ord("0")
        head[257:265] = b"ustar\x0000"
        head[148:156] = b"%06o\0 " % sum(head)
        archive += bytes(head) + data + bytes(-len(data) % 512)
    return archive + bytes(1024)


class Kind:
    """How files of a kind are written, each version of the same size."""

    def __init__(self, source, fields, write):
        self.source, self.fields, self.write = source, fields, write


def numbers(version):
    return [float(10000 + version * 5000 + row) for row in range(ROWS)]


def one_file(name, content):
    return lambda version: {name: content(version)}


def npy_bytes(values):
    head = ("{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }"
            % len(values))
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return (b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode()
            + struct.pack(f"<{len(values)}f", *values))


def safetensors_bytes(values):
    size = 4 * len(values)
    head = json.dumps({"x": {"dtype": "F32", "shape": [len(values)],
                             "data_offsets": [0, size]}}).encode()
    head += b" " * (-len(head) % 8)
    return (struct.pack("<Q", len(head)) + head
            + struct.pack(f"<{len(values)}f", *values))


def zarr_files(version):
    values = numbers(version)
    files = {"a.zarr/.zgroup": b'{"zarr_format": 2}',
             "a.zarr/x/.zarray": json.dumps(
                 {"zarr_format": 2, "shape": [ROWS], "chunks": [100],
                  "dtype": "<f4", "compressor": None, "fill_value": 0,
                  "order": "C", "filters": None}).encode()}
    for chunk in range(ROWS // 100):
        part = values[100 * chunk:100 * chunk + 100]
        files[f"a.zarr/x/{chunk}"] = struct.pack("<100f", *part)
    return files


def pictures(version, count=ROWS // 4):
    return [(f"c{row % 2}/{row:05}.png", png(version * 100 + row))
            for row in range(count)]


def sounds(version):
    return {f"s/c{row % 2}/{row:05}.wav": wav(version * 9000 + row)
            for row in range(ROWS // 4)}


X = {"x": {"columns": ["x"], "dtype": "float32"}}
PICTURE = {"x": {"image": {"column": "image", "size": 8, "train": "none",
                           "val": "none", "flip": 0}}}
SOUND = {"x": {"audio": {"column": "audio", "rate": 8000, "seconds": 0.008,
                         "crop": "start"}}}
KINDS = {
    "csv": Kind({"kind": "csv", "path": "t.csv"}, X, one_file(
        "t.csv", lambda version: ("x\n" + "".join(
            f"{x:.0f}\n" for x in numbers(version))).encode())),
    "jsonl": Kind({"kind": "jsonl", "path": "t.jsonl"}, X, one_file(
        "t.jsonl", lambda version: "".join(
            f'{{"x": {x:.0f}}}\n' for x in numbers(version)).encode())),
    "npy": Kind({"kind": "npy", "path": "x.npy"},
                {"x": {"columns": ["array"], "dtype": "float32"}},
                one_file("x.npy", lambda version: npy_bytes(
                    numbers(version)))),
    "safetensors": Kind({"kind": "npy", "path": "x.safetensors"}, X,
                        one_file("x.safetensors", lambda version:
                                 safetensors_bytes(numbers(version)))),
    "token_store": Kind(
        {"kind": "token_store", "path": "x.bin", "dtype": "uint16",
         "document_end": 0},
        {"x": {"tokens": {"column": "input_ids", "max_length": 8,
                          "pack": "none"}}},
        one_file("x.bin", lambda version: b"".join(
            struct.pack("<4H", version * 2000 + row + 1, 7, 7, 0)
            for row in range(ROWS)))),
    "zarr": Kind({"kind": "zarr", "path": "a.zarr"},
                 {"x": {"columns": ["/x"], "dtype": "float32"}}, zarr_files),
    "images": Kind({"kind": "images", "path": "p"}, PICTURE, lambda version: {
        "p/" + name: data for name, data in pictures(version)}),
    "tar": Kind({"kind": "images", "path": "p.tar"}, PICTURE, lambda version: {
        "p.tar": tar(pictures(version))}),
    "audio": Kind({"kind": "audio", "path": "s"}, SOUND, sounds),
    "image paths": Kind(
        {"kind": "csv", "path": "t.csv"},
        {"x": {"image": {**PICTURE["x"]["image"], "column": "p",
                         "folder": "p"}}},
        lambda version: {
            "t.csv": ("p\n" + "".join(name + "\n" for name, _ in
                                      pictures(0))).encode(),
            **{"p/" + name: data for name, data in pictures(version)}}),
    "audio paths": Kind(
        {"kind": "csv", "path": "t.csv"},
        {"x": {"audio": {**SOUND["x"]["audio"], "column": "p"}}},
        lambda version: {
            "t.csv": ("p\n" + "".join(name + "\n" for name in
                                      sounds(0))).encode(), **sounds(version)}),
}
TIERS = ("none", "auto", "ram", "disk")
WAYS = ("replace", "rewrite", "cut", "delete")


class Changes(Case):
    def put(self, files):
        for name, data in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def change(self, way, files):
        """To the other version, with the sizes and times of this one."""
        for name, data in files.items():
            path = self.folder / name
            if path.read_bytes() == data:
                continue
            was = path.stat()
            if way == "delete":
                path.unlink()
            elif way == "cut":
                os.truncate(path, len(data) // 2)
            elif way == "rewrite":
                with open(path, "r+b") as file:
                    file.write(data)
            else:
                aside = self.folder / "aside"
                aside.write_bytes(data)
                os.utime(aside, ns=(was.st_atime_ns, was.st_mtime_ns))
                os.replace(aside, path)
            if way == "rewrite":
                os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))

    def command(self, tier):
        return ["batch", "job.json", "--steps", "0:75", "--set",
                f"loader.cache={tier}"]

    def lines(self, out):
        return [json.loads(line)["bytes_digest"] for line in out.splitlines()]

    def read_while(self, tier, after, act):
        """The batches of a run, which waits for its reader after a few KiB of
        them, with `act` called after some."""
        process = subprocess.Popen(
            [PROGRAM, *self.command(tier)], cwd=self.folder, bufsize=0,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            pipesize=PIPE_BYTES)
        self.addCleanup(process.kill)
        out = b"".join(process.stdout.readline() for _ in range(after))
        time.sleep(0.02)
        act()
        rest, told = process.communicate(timeout=PATIENCE_S)
        return (process.returncode, self.lines((out + rest).decode()),
                told.decode())

    def test_batches_are_of_one_version_or_the_run_says_that_files_changed(self):
        seed = int(os.environ.get("PENSTOCK_TEST_SEED", "1"))
        chance = random.Random(seed)
        cases = [(kind, tier, way) for kind in KINDS for tier in TIERS
                 for way in WAYS]
        chance.shuffle(cases)
        ends = {0: 0, 3: 0}
        for number in range(TRIES):
            name, tier, way = cases[number % len(cases)]
            kind = KINDS[name]
            shutil.rmtree(self.folder)
            self.folder.mkdir()
            self.put(kind.write(0))
            time.sleep(0.02)
            self.write_job(self.job(
                source=kind.source, fields=kind.fields,
                loader={"batch_size": 4, "seed": number, "workers": 1,
                        "cache_dir": "stores"},
                device={"kind": "cpu"}))
            first = self.lines(self.succeed(*self.command("none")).out)
            after = chance.randrange(1, 12)
            code, seen, told = self.read_while(
                tier, after, lambda: self.change(way, kind.write(1)))
            what = (name, tier, way, after, seed, number)
            self.assertIn(code, ends, (what, told[-500:]))
            ends[code] += 1
            self.assertEqual(seen, first[:len(seen)], what)
            if code == 0:
                self.assertEqual(len(seen), 75, what)
            else:
                self.assertIn("has changed since", told, what)
        self.assertGreater(min(ends.values()), TRIES // 20, ends)


if __name__ == "__main__":
    unittest.main()
