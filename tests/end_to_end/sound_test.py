"""Arrays on disk and sounds, as a job reads them: windows, augmentation and
spectrograms are the same with any number of workers, in any tier."""
import math
import pathlib
import shutil
import struct
import tarfile
import unittest
import wave

from penstock_cli import Case, floats, has_library, read_safetensors

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
MASKS = {"spec_augment": {"time_masks": 1, "time_width": 4}}


def npy(descr, shape, data):
    header = str({"descr": descr, "fortran_order": False, "shape": shape})
    header = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


class Batches(Case):
    def prepare(self, source, fields, held_out=0.0, device="sim", **loader):
        self.write_job(self.job(
            source=source, fields=fields, split={"val": held_out},
            loader={"batch_size": 4, "seed": 3, **loader}, device=device))

    def epoch(self, *arguments):
        """The digests of an epoch, and the tensors of its first batch."""
        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        lines = self.batches("--steps", "0:3", "--out", str(out), *arguments)
        first = read_safetensors(sorted(out.iterdir())[0])
        return [line["bytes_digest"] for line in lines], lines[0]["keys"], first

    def same_everywhere(self, source, fields, by_device):
        """`by_device`: it can do all that is done to rows in each epoch."""
        self.prepare(source, fields)
        expected = self.epoch()[0]
        for loader in ({"workers": 0}, {"workers": 1}, {"workers": 2},
                       {"workers": 8}, {"cache": "ram"}, {"cache": "none"},
                       {"device": "cpu"},
                       *([{"cache": "device"}] if by_device else [])):
            with self.subTest(**loader):
                self.prepare(source, fields, **loader)
                self.assertEqual(self.epoch()[0], expected)
        self.assertNotEqual(self.epoch("--epoch", "1")[0], expected)


class Arrays(Batches):
    def setUp(self):
        super().setUp()
        data = self.folder / "data"
        data.mkdir()
        for part in range(2):
            values = [100 * part + i for i in range(40)]
            (data / f"x_{part}.npy").write_bytes(
                npy("<f4", (40,), struct.pack("<40f", *values)))
        (data / "z.npy").write_bytes(
            npy("<i8", (12,), struct.pack("<12q", *range(12))))
        self.source = {"kind": "npy", "path": "data",
                       "arrays": {"x": "x_*.npy"}}

    def test_windows_of_long_arrays_are_the_samples(self):
        self.prepare(self.source, {"x": {"array": {
            "column": "x", "window": {"length": 8, "stride": 4}}}})
        _, keys, first = self.epoch()
        self.assertEqual(first["x"][:2], ("F32", [4, 8]))
        rows = floats(first["x"])
        for at, key in enumerate(keys):
            part, begin = divmod(key, 9)  # windows of each file
            begin = 100 * part + 4 * begin
            self.assertEqual(rows[8 * at:8 * at + 8],
                             list(range(begin, begin + 8)))

    def test_any_number_of_workers_any_tier_the_same_batches(self):
        # A device sets masks, multiplies and shifts; the host does all else.
        moves = [{"gain": {}}, {"time_shift": {}}]
        noise = {"noise": {"snr": 20}}
        for augment in ([MASKS], [MASKS, *moves], [*moves, MASKS],
                        [MASKS, noise, *moves]):
            with self.subTest(augment=augment):
                self.same_everywhere(self.source, {"x": {"array": {
                    "column": "x", "window": {"length": 16, "stride": 2},
                    "augment": augment}}}, by_device=noise not in augment)

    def test_the_held_out_side_is_not_augmented(self):
        fields = {"x": {"array": {"column": "x", "window": {"length": 8}}}}
        self.prepare(self.source, fields, held_out=0.5)
        plain = self.epoch("--split", "val")[2]["x"]
        fields["x"]["array"]["augment"] = [{"gain": {"db": 6}}]
        self.prepare(self.source, fields, held_out=0.5)
        self.assertEqual(self.epoch("--split", "val")[2]["x"], plain)
        loud = floats(self.epoch()[2]["x"])
        self.prepare(self.source, {"x": {"array": {
            "column": "x", "window": {"length": 8}}}}, held_out=0.5)
        quiet = floats(self.epoch()[2]["x"])
        for a, b in zip(loud, quiet):
            self.assertAlmostEqual(a, b * 10 ** 0.3, places=3)

    def test_mixup_mixes_what_was_augmented(self):
        self.prepare(self.source, {"x": {"array": {
            "column": "x", "window": {"length": 8}, "augment": [MASKS]}}},
            operations=[{"mixup": ["x"]}])
        self.assertEqual(self.epoch()[2]["x"][:2], ("F32", [4, 8]))

    def test_windows_of_a_table_are_refused(self):
        self.database(self.rows())
        self.write_job(self.job(fields={"x": {"array": {
            "column": "y", "of": "float32", "window": {"length": 8}}}}))
        answer = self.run_it("batch", "job.json", "--steps", "0:1", "--json")
        self.refused(answer, "request", "source.window", "SQLite")

    def test_arrays_of_other_lengths_are_refused(self):
        self.prepare({"kind": "npy", "path": "data",
                      "arrays": {"x": "x_0.npy", "z": "z.npy"}},
                     {"x": {"column": "x"}, "z": {"column": "z"}})
        answer = self.run_it("batch", "job.json", "--steps", "0:1", "--json")
        self.refused(answer, "source", "arrays.lengths", "40 rows", "12 rows")

    def test_zarr_and_tfrecord_are_sources_by_uri(self):
        store = DATA / "zarr/three.zarr"
        lines = self.succeed("peek", f"zarr:{store}", "--json").json()
        self.assertIn("/sharded", str(lines))


@unittest.skipUnless(has_library("penstock_audio"), "built without libsndfile")
class Sounds(Batches):
    def setUp(self):
        super().setUp()
        for i in range(12):
            folder = self.folder / "sounds" / ["hum", "beep"][i % 2]
            folder.mkdir(parents=True, exist_ok=True)
            with wave.open(str(folder / f"{i:02}.wav"), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate([8000, 16000][i % 2])
                file.writeframes(struct.pack("<4000h", *(
                    round(9000 * math.sin(i * t / 9)) for t in range(4000))))
        self.source = {"kind": "audio", "path": "sounds"}
        self.fields = {
            "x": {"audio": {"seconds": 0.25, "mel": {"n_mels": 16}}},
            "y": {"category": {"column": "class", "unknown": "error"}}}

    def test_classes_are_folders_and_rows_spectrograms(self):
        self.prepare(self.source, self.fields)
        _, keys, first = self.epoch()
        self.assertEqual(first["x"][:2], ("F32", [4, 1, 16, 21]))
        names = sorted(str(p.relative_to(self.folder / "sounds"))
                       for p in (self.folder / "sounds").rglob("*.wav"))
        self.assertEqual(struct.unpack("<4q", first["y"][2]),
                         tuple(["beep", "hum"].index(names[k].split("/")[0])
                               for k in keys))

    def test_any_number_of_workers_any_tier_the_same_batches(self):
        for more in ({"augment": [MASKS]},
                     {"augment": [{"noise": {}}, {"time_shift": {}}, MASKS]},
                     {"crop": "random", "seconds": 0.1}):
            with self.subTest(**more):
                fields = {**self.fields, "x": {"audio": {
                    "seconds": 0.25, "mel": {"n_mels": 16}, **more}}}
                self.same_everywhere(
                    self.source, fields,
                    by_device=more == {"augment": [MASKS]})

    def test_a_tar_file_and_a_table_of_paths_give_the_same_rows(self):
        self.prepare(self.source, self.fields)
        expected = self.epoch()[2]["x"]
        with tarfile.open(self.folder / "all.tar", "w") as tar:
            tar.add(self.folder / "sounds", ".")
        self.prepare({"kind": "audio", "path": "all.tar"}, self.fields)
        self.assertEqual(self.epoch()[2]["x"][:2], expected[:2])
        names = sorted(str(p.relative_to(self.folder / "sounds"))
                       for p in (self.folder / "sounds").rglob("*.wav"))
        (self.folder / "rows.csv").write_text(
            "file,class,from,to\n" + "".join(
                f"{name},{name.split('/')[0]},0,0.25\n" for name in names))
        self.prepare({"kind": "csv", "path": "rows.csv"}, {
            **self.fields, "x": {"audio": {
                **self.fields["x"]["audio"], "column": "file",
                "folder": "sounds", "start": "from", "end": "to"}}})
        self.assertEqual(self.epoch()[2]["x"][:2], expected[:2])

    def test_a_damaged_file_is_a_bad_row_that_is_named(self):
        bad = self.folder / "sounds/hum/04.wav"
        bad.write_bytes(b"no sound at all")
        self.prepare(self.source, self.fields)
        answer = self.run_it("batch", "job.json", "--steps", "0:3", "--json")
        self.assertNotEqual(answer.code, 0)
        self.assertIn("cannot be decoded", answer.out)

    def test_where_all_rows_are_read_first_a_damaged_file_is_left_out(self):
        bad = self.folder / "sounds/hum/04.wav"
        bad.write_bytes(b"no sound at all")
        self.prepare(self.source, self.fields, cache="ram")
        answer = self.run_it("batch", "job.json", "--steps", "0:3", "--json")
        self.refused(answer, "transform", "data.bad_rows", "hum/04.wav",
                     "cannot be decoded", "skip")
        listed = self.run_it("check", "job.json", "--json").json()
        self.assertEqual(listed["bad_rows"], 1)
        self.prepare({**self.source, "on_bad": "skip"}, self.fields,
                     cache="ram")
        keys = sum((line["keys"] for line in self.batches("--steps", "0:2")),
                   [])
        self.assertEqual(len(keys), 8)

    def test_a_sample_that_is_no_number_is_named_with_its_file(self):
        data = struct.pack("<4000f", *([0.25] * 2000 + [math.nan] * 2000))
        (self.folder / "sounds/hum/04.wav").write_bytes(
            b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt "
            + struct.pack("<IHHIIHH", 16, 3, 1, 16000, 64000, 4, 32)
            + b"data" + struct.pack("<I", len(data)) + data)
        for cache in ("ram", "none"):
            with self.subTest(cache=cache):
                self.prepare(self.source, self.fields, cache=cache)
                answer = self.run_it("batch", "job.json", "--steps", "0:3",
                                     "--json")
                self.assertNotEqual(answer.code, 0)
                self.assertIn("hum/04.wav", answer.out)
                self.assertIn("sample 2000 is NaN", answer.out)
        for on_bad in ("substitute", "mask"):
            seen = []
            for more in ({"cache": "none"}, {"cache": "ram"}, {"cache": "disk"},
                         {"cache": "disk"}, {"cache": "device"},
                         *({"cache": "ram", "workers": n} for n in (0, 1, 8))):
                self.prepare(self.source, self.fields, on_bad=on_bad, **more)
                seen.append([line["bytes_digest"] for line in
                             self.batches("--steps", "0:3")])
            self.assertEqual(seen, [seen[0]] * len(seen))
        for what in ("audio:sounds", "job.json"):
            with self.subTest(what=what):
                found = self.run_it("check", what, "--json")
                self.assertEqual(found.code, 4)
                found = found.json()
                self.assertEqual((found["rows"], found["bad_rows"]), (12, 1))
                self.assertIn("hum/04.wav", found["bad"][0]["why"])
                self.assertIn("sample 2000 is NaN", found["bad"][0]["why"])
        (self.folder / "sounds/hum/04.wav").unlink()
        self.assertIn("all rows can be used",
                      self.succeed("check", "audio:sounds").out)


if __name__ == "__main__":
    unittest.main()
