"""Arrays on disk as a person meets them: what of a file is left out, shapes
that the file knows, sides by file, and copies."""
import json
import pathlib
import struct
import unittest
import wave

from penstock_cli import Case, floats, has_library, read_safetensors

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
HDF5 = DATA / "hdf5/refused.h5"
ZARR = DATA / "zarr/texts3.zarr"


def npy(descr, shape, data):
    header = str({"descr": descr, "fortran_order": False, "shape": shape})
    header = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


class LeftOut(Case):
    def left_out(self, verb, uri):
        document = self.succeed(verb, uri, "--json").json()
        plain = self.succeed(verb, uri).out
        self.assertIn("left out:\n", plain)
        for one in document["left_out"]:
            self.assertEqual(list(one), ["name", "why", "next"])
            self.assertIn(f"  {one['name']}: {one['why']}; {one['next']}\n",
                          plain)
        return ([column["name"] for column in document["columns"]],
                {one["name"]: one["why"] for one in document["left_out"]})

    @unittest.skipUnless(has_library("penstock_source_hdf5"),
                         "built without HDF5")
    def test_of_hdf5_is_said(self):
        for verb in ("peek", "check"):
            columns, left_out = self.left_out(verb, f"hdf5:{HDF5}")
            self.assertEqual(columns, ["/again", "/x"])
            self.assertEqual(sorted(left_out), ["/away", "/long", "/nowhere",
                                                "/refs", "/several", "/short"])
            self.assertIn("19 rows", left_out["/short"])

    def test_of_zarr_is_said_and_does_not_refuse_the_rest(self):
        for verb in ("peek", "check"):
            columns, left_out = self.left_out(verb, f"zarr:{ZARR}")
            self.assertIn("/plain", columns)
            self.assertNotIn("/complex", columns)
            self.assertEqual(list(left_out), ["/complex"])

    def test_of_uint64_limits_beyond_int64_are_what_they_are(self):
        values = struct.pack("<3Q", 2**63 + 2**20, 3, 2**64 - 2**20)
        (self.folder / "u.npy").write_bytes(npy("<u8", (3,), values))
        column, = self.succeed("peek", "npy:u.npy", "--json").json()["columns"]
        self.assertEqual(column["min"], 3)
        self.assertEqual(column["max"], float(2**64 - 2**20))

    def test_an_array_of_another_length_is_read_alone(self):
        columns, left_out = self.left_out("peek", f"zarr:{DATA}/zarr/two.zarr")
        self.assertEqual(columns, ["/group/long"])
        self.assertIn("5 rows", left_out["/plain"])
        self.write_job(self.job(
            source={"kind": "zarr", "path": str(DATA / "zarr/two.zarr")},
            fields={"x": {"array": {"column": "/plain", "shape": [3]}}},
            loader={"batch_size": 4}))
        self.batches("--steps", "0:1")

    def test_a_file_of_nothing_that_is_read_says_why(self):
        self.refused(self.run_it("peek", f"npy:{DATA}/arrays/complex.npy",
                                 "--json"), "source", "arrays.type", "'<c8'")

    def test_of_a_table_nothing_is_said(self):
        self.database(self.rows())
        self.assertNotIn(
            "left_out",
            self.succeed("peek", "sqlite:d.sqlite#t", "--json").json())


class NotRead(Case):
    def test_formats_are_named_with_a_way_out(self):
        (self.folder / "d.lmdb").mkdir()
        (self.folder / "d.lmdb/data.mdb").write_bytes(b"")
        (self.folder / "env").mkdir()
        (self.folder / "env/data.mdb").write_bytes(b"")
        (self.folder / "mds").mkdir()
        (self.folder / "mds/index.json").write_text(json.dumps(
            {"version": 2, "shards": [{"format": "mds", "samples": 3}]}))
        (self.folder / "x.beton").write_bytes(b"")
        for uri, name, way in (
                ("d.lmdb", "LMDB", "Parquet"), ("env", "LMDB", "Parquet"),
                ("lmdb:env", "LMDB", "Parquet"), ("mds", "MDS", "Parquet"),
                ("x.beton", "FFCV", "made from")):
            with self.subTest(uri):
                self.refused(self.run_it("peek", uri, "--json"), "request",
                             "files.not_read", name, way)
        self.write_job(self.job(source={"kind": "lmdb", "path": "env"}))
        self.refused(self.run_it("check", "job.json", "--json"), "request",
                     "files.not_read", "LMDB", "source.kind")


class Shapes(Case):
    def setUp(self):
        super().setUp()
        (self.folder / "long.npy").write_bytes(
            npy("<f4", (100, 8), bytes(3200)))

    def refusal(self, **array):
        self.write_job(self.job(
            source={"kind": "npy", "path": "long.npy"},
            fields={"x": {"array": {"column": "array", **array}}}))
        return self.refused(
            self.run_it("batch", "job.json", "--steps", "0:1", "--json"),
            "request", "fields.array", "'array'")["next"]

    def test_that_the_file_knows_are_printed(self):
        self.assertEqual(self.refusal(shape=[4]), 'write "shape": [8]')
        self.assertEqual(self.refusal(window={"length": 10}),
                         'write "shape": [8]')


class Sides(Case):
    """Windows of ten recordings; numbers say which one they are of."""

    def setUp(self):
        super().setUp()
        (self.folder / "data").mkdir()
        for part in range(10):
            (self.folder / f"data/x{part}.npy").write_bytes(
                npy("<f4", (40,), struct.pack("<40f", *[part] * 40)))

    def prepare(self, stride, **split):
        self.write_job(self.job(
            source={"kind": "npy", "path": "data"},
            fields={"x": {"array": {"column": "array", "window": {
                "length": 8, "stride": stride}}}},
            loader={"batch_size": 4}, split={"val": 0.3, **split}))

    def recordings(self, side):
        out = self.folder / side
        self.succeed("batch", "job.json", "--split", side, "--out", str(out),
                     "--steps", "0:12" if side == "train" else "0:5")
        return {number for file in out.iterdir()
                for number in floats(read_safetensors(file)["x"])}

    def test_are_those_of_files_where_the_split_is_by_path(self):
        self.prepare(4, by="path")
        train, val = self.recordings("train"), self.recordings("val")
        self.assertFalse(train & val)
        self.assertTrue(train and val)

    def test_share_elements_of_overlapping_windows_which_is_said(self):
        said = "windows of column 'array' overlap (length 8, stride 4)"
        self.prepare(4)
        self.assertTrue(self.recordings("train") & self.recordings("val"))
        answer = self.succeed("train", "job.json", "--plan")
        self.assertIn(said, answer.out + answer.err)
        for stride, split in ((8, {}), (4, {"by": "path"}), (4, {"val": 0})):
            self.prepare(stride, **split)
            answer = self.succeed("train", "job.json", "--plan")
            self.assertNotIn("overlap", answer.out + answer.err)


class Ragged(Case):
    """Lists of 0 to 4 numbers."""

    def setUp(self):
        super().setUp()
        self.lists = [[10 * row + i for i in range(row % 5)]
                      for row in range(12)]
        (self.folder / "rows.jsonl").write_text("".join(
            json.dumps({"row": row, "x": values}) + "\n"
            for row, values in enumerate(self.lists)))

    def batches_of(self, ragged):
        self.write_job(self.job(
            source={"kind": "jsonl", "path": "rows.jsonl"},
            fields={"x": {"array": {"column": "x", "ragged": ragged}},
                    "row": {"column": "row"}},
            loader={"batch_size": 4, "seed": 3}))
        out = self.folder / "out"
        self.batches("--steps", "0:3", "--out", str(out))
        return [read_safetensors(file) for file in sorted(out.iterdir())]

    def test_rows_are_padded_beside_a_mask(self):
        seen = []
        for batch in self.batches_of("pad"):
            kind, (rows, longest), mask = batch["x_mask"]
            self.assertEqual((kind, rows), ("BOOL", 4))
            self.assertEqual(batch["x"][:2], ("F32", [4, longest]))
            numbers, mask = floats(batch["x"]), list(mask)
            lengths = struct.unpack("<4i", batch["x_lengths"][2])
            for at in range(4):
                row = slice(at * longest, (at + 1) * longest)
                count = lengths[at]
                self.assertEqual(mask[row],
                                 [1] * count + [0] * (longest - count))
                self.assertEqual(numbers[row][count:], [0] * (longest - count))
                seen.append(numbers[row][:count])
        self.assertEqual(sorted(seen), sorted(self.lists))

    def test_rows_follow_one_another_beside_offsets(self):
        seen = []
        for batch in self.batches_of("offsets"):
            offsets = struct.unpack("<5i", batch["x_offsets"][2])
            self.assertEqual(offsets[0], 0)
            numbers = floats(batch["x"])
            self.assertEqual(offsets[-1], len(numbers))
            seen += [numbers[a:b] for a, b in zip(offsets, offsets[1:])]
        self.assertEqual(sorted(seen), sorted(self.lists))


@unittest.skipUnless(has_library("penstock_audio"), "built without libsndfile")
class Copies(Case):
    def test_of_what_a_table_names_are_not_made_which_is_said(self):
        (self.folder / "clips").mkdir()
        for i in range(4):
            with wave.open(str(self.folder / f"clips/{i}.wav"), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(16000)
                file.writeframes(bytes(8000))
        (self.folder / "rows.csv").write_text(
            "file\n" + "".join(f"{i}.wav\n" for i in range(4)))
        self.write_job(self.job(
            source={"kind": "csv", "path": "rows.csv", "stage": "copies"},
            fields={"x": {"audio": {"column": "file", "folder": "clips",
                                    "rate": 16000, "seconds": 0.1}}},
            loader={"batch_size": 2}))
        answer = self.succeed("train", "job.json", "--plan")
        self.assertIn("source.stage: the files in 'clips', which "
                      "'fields.x.audio.folder' names, are not copied",
                      answer.out + answer.err)


if __name__ == "__main__":
    unittest.main()
