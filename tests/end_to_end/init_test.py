"""`penstock train --init` of pictures, texts and chats: one command writes
a job that trains unchanged, and names the option that decides what it cannot."""
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tarfile
import unittest
import zlib

from penstock_cli import Case, has_library, has_part

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "text"


def png(red, side=24):
    """A square picture of one colour."""
    def chunk(name, data):
        return (struct.pack(">I", len(data)) + name + data +
                struct.pack(">I", zlib.crc32(name + data)))
    line = b"\0" + bytes((red, 40, 80)) * side
    return (b"\x89PNG\r\n\x1a\n" +
            chunk(b"IHDR", struct.pack(">2I5B", side, side, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(line * side)) + chunk(b"IEND", b""))


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
