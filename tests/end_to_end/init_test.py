"""`penstock train --init` of pictures, sounds, arrays, texts and chats: one command writes
a job that trains unchanged, and names the option that decides what it cannot."""
import json
import math
import pathlib
import shutil
import struct
import subprocess
import sys
import tarfile
import unittest
import wave
import zlib

from penstock_cli import Case, has_library, has_part

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "text"
DATA = pathlib.Path(__file__).resolve().parents[1] / "data"


def png(red, side=24):
    """A square picture of one colour."""
    def chunk(name, data):
        return (struct.pack(">I", len(data)) + name + data +
                struct.pack(">I", zlib.crc32(name + data)))
    line = b"\0" + bytes((red, 40, 80)) * side
    return (b"\x89PNG\r\n\x1a\n" +
            chunk(b"IHDR", struct.pack(">2I5B", side, side, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(line * side)) + chunk(b"IEND", b""))


def tone(path, seconds, hertz, rate=8000):
    """A WAV file of one tone, which is never 0 for long."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(b"".join(struct.pack("<h", round(
            9000 * math.cos(2 * math.pi * hertz * at / rate)))
            for at in range(round(seconds * rate))))


@unittest.skipUnless(has_part("trainer"), "the trainer was not built")
class Init(Case):
    def init(self, source, *arguments, steps=2):
        """Writes the job, takes a few steps of it, and checks it; the report
        and the text of the job."""
        report = self.succeed(
            "train", "--init", source, "--out", "new.json", *arguments,
            "--json", "--set", "device=cpu", "--set", "train.threads=1",
            "--set", f"train.max_steps={steps}").json()
        self.assertEqual(report["steps"], steps)
        self.assertIn("val", report["metrics"], report["metrics"])
        checked = self.succeed("check", "new.json", "--json").json()
        self.assertIsNone(checked["no_batch"])
        return report, (self.folder / "new.json").read_text()

    @unittest.skipUnless(has_library("penstock_images"),
                         "built without libjpeg, libpng or libwebp")
    def test_a_few_pictures_in_class_folders_and_in_tar_shards(self):
        for at in range(10):
            of = self.folder / "photos" / ("cat", "dog")[at % 2]
            of.mkdir(parents=True, exist_ok=True)
            (of / f"{at}.png").write_bytes(png(25 * at))
        report, text = self.init("images:photos", "--set", "fields.image.image."
                                 "size=32")
        self.assertEqual(report["settings"]["model"]["kind"],
                         "image_classifier")
        self.assertEqual(report["settings"]["loader"]["batch_size"], 2)
        self.assertIn("// And half of them mirrored.", text)
        self.assertIn('"train": "random_resized_crop"', text)
        self.assertEqual(report["confusion"]["classes"], ["cat", "dog"])
        self.assertIn("val_accuracy", report["baseline"])
        for row in report["worst_rows"]:
            self.assertRegex(str(row["key"]), r"(cat|dog)/\d\.png")
            self.assertIn(row["truth"], ("cat", "dog"))
        with tarfile.open(self.folder / "shard-0.tar", "w") as shard:
            shard.add(self.folder / "photos", arcname=".")
        (self.folder / "new.json").unlink()
        report, _ = self.init("images:shard-0.tar", "--set",
                              "fields.image.image.size=32")
        self.assertEqual(report["dataset"]["rows"], 10)

    @unittest.skipUnless(has_library("penstock_audio"),
                         "built without libsndfile")
    def test_sounds_in_class_folders_and_in_tar_shards(self):
        for at in range(60):
            of = self.folder / "events" / ("beep", "hum")[at % 2]
            of.mkdir(parents=True, exist_ok=True)
            tone(of / f"{at:02}.wav", 0.2 + 0.3 * (at == 4), 40 + 400 * (at % 2))
        report, text = self.init("audio:events")
        settings = report["settings"]
        self.assertEqual(settings["model"]["kind"], "spectrogram_classifier")
        self.assertEqual(settings["train"]["patience"], 10)
        self.assertEqual(
            settings["fields"]["sound"]["audio"]["seconds"], 0.5)
        self.assertIn("as the longest of the first", text)
        for change in ("time_shift", "spec_augment"):
            self.assertRegex(text, r"// .*\n +\{\"" + change)
        self.assertEqual(report["confusion"]["classes"], ["beep", "hum"])
        self.assertEqual(len({row["key"] for row in report["worst_rows"]}),
                         report["dataset"]["val"])
        with tarfile.open(self.folder / "shard-0.tar", "w") as shard:
            shard.add(self.folder / "events", arcname=".")
        (self.folder / "new.json").unlink()
        report, _ = self.init("audio:shard-0.tar")
        self.assertEqual(report["dataset"]["rows"], 60)

    @unittest.skipUnless(has_library("penstock_audio"),
                         "built without libsndfile")
    def test_of_long_sounds_another_part_is_drawn_in_each_epoch(self):
        for at in range(8):
            of = self.folder / "events" / ("beep", "hum")[at % 2]
            of.mkdir(parents=True, exist_ok=True)
            tone(of / f"{at}.wav", 11, 40 + 400 * (at % 2), rate=4000)
        report, text = self.init("audio:events", "--set",
                                 "fields.sound.audio.seconds=2", steps=1)
        sound = report["settings"]["fields"]["sound"]["audio"]
        self.assertEqual(sound["crop"], "random")
        self.assertIn('"seconds": 10', text)
        self.assertNotIn("time_shift", text)
        self.assertNotIn("patience", text)  # too few rows are held out

    @unittest.skipUnless(has_library("penstock_audio"),
                         "built without libsndfile")
    def test_sounds_in_a_column_of_a_table(self):
        rows = []
        for at in range(60):
            tone(self.folder / "one.wav", 0.3, 40 + 400 * (at % 2))
            rows.append((at, (self.folder / "one.wav").read_bytes(), at / 7,
                         ("beep", "hum")[at % 2]))
        self.database(rows, "id INTEGER PRIMARY KEY, clip BLOB, x REAL, "
                            "what TEXT")
        report, text = self.init("sqlite:d.sqlite#t", "--target", "what")
        self.assertEqual(report["settings"]["model"]["kind"],
                         "spectrogram_classifier")
        self.assertIn('"column": "clip"', text)
        self.assertIn('"seconds": 0.3', text)
        self.assertEqual(report["confusion"]["classes"][:2], ["beep", "hum"])
        self.refuse("request", "init.target", "classes", arguments=[
            "train", "--init", "sqlite:d.sqlite#t", "--target", "x", "--out",
            "other.json"])

    @unittest.skipUnless(has_library("penstock_audio"),
                         "built without libsndfile")
    def test_sounds_without_classes_are_refused(self):
        (self.folder / "events" / "hum").mkdir(parents=True)
        tone(self.folder / "events" / "hum" / "1.wav", 0.1, 40)
        self.refuse("request", "init.target", "all sounds have the class",
                    arguments=["train", "--init", "audio:events"])

    @unittest.skipUnless(has_part("hdf5"), "the part for HDF5 was not built")
    def test_arrays_of_hdf5(self):
        shutil.copy(DATA / "hdf5/plain.h5", self.folder / "plain.h5")
        self.refuse("request", "init.no_inputs", "--input", arguments=[
            "train", "--init", "plain.h5", "--target", "/flag"])
        report, text = self.init("plain.h5", "--target", "/flag", "--input", "/x")
        self.assertEqual(report["settings"]["model"]["kind"],
                         "spectrogram_classifier")
        self.assertIn("arrays of shape [2, 3]", text)
        self.assertNotIn("patience", text)  # 8 rows are held out
        self.assertEqual(sum(map(sum, report["confusion"]["counts"])),
                         report["dataset"]["val"])
        (self.folder / "new.json").unlink()
        report, _ = self.init("plain.h5", "--target", "/y", "--input", "/half")
        self.assertEqual(report["settings"]["model"]["kind"], "tabular")
        self.assertIn("residuals", report)

    @unittest.skipUnless(has_part("hdf5"), "the part for HDF5 was not built")
    def test_arrays_of_hdf5_are_trained_until_patience_ends(self):
        shutil.copy(DATA / "hdf5/plain.h5", self.folder / "plain.h5")
        self.init("plain.h5", "--target", "/flag", "--input", "/x")
        sets = ("--set", "train.epochs=400", "--set", "train.lr=0.3")
        report = self.succeed("train", "new.json", "--json", *sets, "--set",
                              "train.patience=3").json()
        best = report["best"]["epoch"]
        self.assertLess(best, 100)
        self.assertEqual(len(report["epochs"]), best + 4)
        self.assertTrue((self.folder / report["run"] / "weights" /
                         "best.safetensors").exists())
        rest = self.succeed("train", "--resume", report["run"], "--json",
                            "--set", "train.patience=4").json()
        self.assertEqual(len(rest["epochs"]), 1)

    def texts(self):
        for path in EXAMPLE.iterdir():
            if path.is_file():
                shutil.copy(path, self.folder)
        for script, count in (("make_corpus.py", 120), ("make_chats.py", 80)):
            subprocess.run(
                [sys.executable, "-B", script, script[5:-3] + ".jsonl",
                 str(count)], cwd=self.folder, check=True, capture_output=True)
        (self.folder / "base").mkdir()
        for name in ("config.json", "tokenizer.json", "tokenizer_config.json",
                     "chat_template.jinja"):
            shutil.copy(self.folder / name, self.folder / "base")

    def test_texts_and_chats(self):
        self.texts()
        self.refuse("request", "init.base", "--base FOLDER", arguments=[
            "train", "--init", "corpus.jsonl", "--out", "new.json"])
        report, text = self.init("corpus.jsonl", "--base", "base")
        self.assertEqual(report["settings"]["model"]["kind"], "causal_lm")
        self.assertIn('"config": "base"', text)
        self.assertEqual(report["settings"]["train"]["patience"], 10)
        told = report["texts"][-1]["texts"][0]
        self.assertIn(told["prompt"], "\n".join(
            json.loads(line)["text"] for line in
            (self.folder / "corpus.jsonl").read_text().splitlines()))
        self.assertGreater(len(told["text"]), 0)
        (self.folder / "new.json").unlink()
        report, text = self.init("chats.jsonl", "--base", "base")
        self.assertIn('"chat": true', text)
        (self.folder / "new.json").unlink()
        lines = (self.folder / "corpus.jsonl").read_text().splitlines()
        (self.folder / "corpus.txt").write_text(
            "\n".join(json.loads(line)["text"].replace("\n", " ")
                      for line in lines))
        report, text = self.init("corpus.txt", "--base", "base")
        self.assertEqual(report["settings"]["source"]["kind"], "text")

    def test_check_says_where_no_batch_can_be_made(self):
        self.database(self.rows(12))
        self.write_job(self.job(loader={"batch_size": 32}))
        done = self.run_it("check", "job.json")
        self.assertEqual(done.code, 2)
        self.assertIn("no batch can be made of the train rows: there are 12 "
                      "rows for a batch of 32", done.out)
        self.assertIn("loader.batch_size", done.out)
        told = self.run_it("check", "job.json", "--json", "--set",
                           "loader.tail=exact")
        self.assertEqual((told.code, told.json()["no_batch"]), (0, None))

    @unittest.skipUnless(has_part("csv"), "the part for CSV was not built")
    def test_a_table_without_a_target_names_the_option(self):
        (self.folder / "t.csv").write_text("a,b\n1,2\n3,4\n")
        self.refuse("request", "init.target", "--target: a, b", arguments=[
            "train", "--init", "t.csv"])


if __name__ == "__main__":
    unittest.main()
