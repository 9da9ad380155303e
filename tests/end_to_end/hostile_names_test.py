"""Names, cells and messages of somebody else's: whatever they hold, nothing
that controls a terminal or turns the direction of writing is printed, and JSON
stays JSON."""
import io
import json
import os
import pathlib
import re
import sqlite3
import stat
import struct
import tarfile
import unittest
import zlib

from penstock_cli import Case, run

HOSTILE = ["\x1b]0;OWNED\x07", "\x1b[31mred", "a\rb", "\x7f", "\x9b1;31m",
           "\u202egnp.exe", "\u2066hidden\u2069", "\x85next"]
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def png():
    def chunk(name, data):
        return (struct.pack(">I", len(data)) + name + data +
                struct.pack(">I", zlib.crc32(name + data)))
    return (b"\x89PNG\r\n\x1a\n" +
            chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(b"\0" + b"\1" * 6 + b"\0" + b"\2" * 6)) +
            chunk(b"IEND", b""))


class HostileNames(Case):
    """Each of these writes what a stranger might, and runs what a user would."""

    def shown(self, *arguments, **variables):
        """What the program prints, which nothing controls."""
        texts = []
        for json_too in ((), ("--json",)):
            answer = run(*arguments, *json_too, cwd=self.folder, **variables)
            for text in (answer.out, answer.err):
                found = CONTROLS.search(text)
                self.assertIsNone(found, repr(text[:2000]))
            texts.append(answer.out + answer.err)
            if json_too and answer.out:
                for line in (answer.out,) if answer.out.startswith("{\n") \
                        else answer.out.splitlines():
                    json.loads(line)
        return texts[0]

    def job(self, source, fields, **loader):
        path = self.folder / "job.json"
        path.write_text(json.dumps(
            {"source": source, "fields": fields,
             "loader": {"batch_size": 1, "cache_dir": "stores", **loader},
             "output": {"dir": "runs"}}))
        return path

    def each(self):
        for hostile in HOSTILE:
            with self.subTest(repr(hostile)):
                yield hostile

    def test_cells_and_column_names_of_a_csv_file(self):
        for hostile in self.each():
            quoted = '"' + hostile + '"'
            (self.folder / "t.csv").write_bytes(
                f'a,{quoted}\n1,2\n{quoted},3\n'.encode())
            for verb in ("check", "peek"):
                self.shown(verb, "csv:t.csv")
            job = self.job({"kind": "csv", "path": "t.csv",
                            "columns": {"a": "int64"}},
                           {"x": {"column": "a"}})
            self.shown("train", job)
            job = self.job({"kind": "csv", "path": "t.csv"},
                           {hostile: {"column": hostile}})
            for verb in ("train", "prepare", "check"):
                self.shown(verb, job)

    def test_names_of_files_and_folders(self):
        for hostile in self.each():
            name = "f" + hostile
            os.makedirs(self.folder / "im" / name, exist_ok=True)
            (self.folder / "im" / name / (name + ".png")).write_bytes(png())
            (self.folder / "im" / name / ("bad" + hostile + ".png")
             ).write_bytes(b"\x89PNG\r\n\x1a\n")
            (self.folder / (name + ".csv")).write_text("a\n1\nx\n")
            for verb in ("check", "peek"):
                self.shown(verb, "images:im")
                self.shown(verb, "csv:" + name + ".csv")
                self.shown(verb, name + ".nothing")
            self.shown("train", self.job(
                {"kind": "images", "path": "im"},
                {"x": {"image": {"size": [2, 2]}}, "y": {"class": {}}}))

    def test_a_name_that_is_not_text(self):
        folder = os.fsencode(self.folder) + b"/im/\xff\x9bx"
        os.makedirs(folder)
        with open(folder + b"/\xfe.png", "wb") as file:
            file.write(b"\x89PNG\r\n\x1a\n")
        for verb in ("check", "peek"):
            self.shown(verb, "images:im")

    def test_members_of_a_tar_file(self):
        for hostile in self.each():
            with tarfile.open(self.folder / "t.tar", "w") as tar:
                link = tarfile.TarInfo("l" + hostile + ".png")
                link.type, link.linkname = tarfile.SYMTYPE, "x"
                tar.addfile(link)
                bad = tarfile.TarInfo("m" + hostile + ".png")
                bad.size = 8
                tar.addfile(bad, io.BytesIO(b"\x89PNG\r\n\x1a\n"))
            for verb in ("check", "peek"):
                self.shown(verb, "images:t.tar")

    def test_tables_columns_and_values_of_a_database(self):
        for hostile in self.each():
            path = self.folder / "d.sqlite"
            path.unlink(missing_ok=True)
            with sqlite3.connect(path) as base:
                base.execute(f'CREATE TABLE "{hostile}" (id INTEGER PRIMARY '
                             f'KEY, "{hostile}" TEXT)')
                base.execute(f'INSERT INTO "{hostile}" VALUES (1, ?), (2, ?)',
                             (hostile, "3"))
            base.close()
            for verb in ("check", "peek"):
                self.shown(verb, "sqlite:d.sqlite")
                self.shown(verb, "sqlite:d.sqlite#" + hostile)
            self.shown("train", self.job(
                {"kind": "sqlite", "path": "d.sqlite", "table": hostile,
                 "where": hostile}, {"x": {"column": hostile}}))

    def test_keys_of_json_and_of_jobs(self):
        for hostile in self.each():
            (self.folder / "t.jsonl").write_text(
                json.dumps({hostile: 1, "b": hostile}) + "\n" +
                json.dumps({hostile: "x"}) + "\n")
            for verb in ("check", "peek"):
                self.shown(verb, "jsonl:t.jsonl")
            (self.folder / "job.json").write_text(json.dumps({hostile: 1}))
            self.shown("train", "job.json")
            (self.folder / "job.json").write_bytes(
                b'{"a": ' + hostile.encode() + b"}")
            self.shown("train", "job.json")
            self.shown("train", "job.json", "--set", hostile + "=1")
            self.shown(hostile)

    def test_tokenizers_and_templates(self):
        (self.folder / "c.jsonl").write_text(json.dumps(
            {"text": "a", "messages": [{"role": "user", "content": "a"}]}))
        for hostile in self.each():
            tokens = {"column": "text", "tokenizer": "tokenizer.json",
                      "max_length": 4}
            job = self.job({"kind": "jsonl", "path": "c.jsonl"},
                           {"tokens": {"tokens": tokens}})
            (self.folder / "tokenizer.json").write_text(json.dumps(
                {"model": {"type": hostile, "vocab": {}}, hostile: 1}))
            self.shown("train", job)
            (self.folder / "tokenizer.json").write_text(json.dumps(
                {"model": {"type": "WordLevel", "vocab": {"a": 0},
                           "unk_token": "a"}}))
            tokens.update(column="messages", chat=True, pack="none",
                          chat_template="chat.jinja")
            job = self.job({"kind": "jsonl", "path": "c.jsonl"},
                           {"tokens": {"tokens": tokens}})
            for template in ("{{ raise_exception('" + hostile + "') }}",
                             "{% " + hostile + " %}", "{{ 'a'|" + hostile):
                (self.folder / "chat.jinja").write_bytes(template.encode())
                self.shown("train", job)

    def test_the_report_of_a_run(self):
        for number, hostile in enumerate(self.each()):
            (self.folder / "t.csv").write_text('a\n1\n2\n')
            field = "x" + hostile
            self.shown("train", self.job(
                {"kind": "csv", "path": "t.csv"}, {field: {"column": "a"}}))
            for report in (self.folder / "runs").glob("*/report.html"):
                self.assertIsNone(CONTROLS.search(report.read_text()))


class Stores(Case):
    def test_what_is_kept_of_rows_is_their_owners(self):
        (self.folder / "t.csv").write_text("a\n1\n2\nx\n")
        (self.folder / "job.json").write_text(json.dumps(
            {"source": {"kind": "csv", "path": "t.csv", "on_bad": "skip",
                        "columns": {"a": "int64"}},
             "fields": {"x": {"column": "a"}},
             "loader": {"batch_size": 1, "cache": "disk",
                        "cache_dir": "kept/stores"},
             "output": {"dir": "runs"}}))
        before = os.umask(0)
        try:
            for verb in ("prepare", "train"):
                answer = run(verb, "job.json", cwd=self.folder)
                self.assertEqual(answer.code, 0, answer.err)
        finally:
            os.umask(before)
        kept = list((self.folder / "kept").rglob("*"))
        self.assertTrue(any(path.is_file() for path in kept))
        kept += [self.folder / "kept",
                 *(self.folder / "runs").rglob("quarantine.jsonl")]
        for path in map(pathlib.Path, kept):
            mode = stat.S_IMODE(path.stat().st_mode)
            self.assertEqual(mode, 0o700 if path.is_dir() else 0o600, path)


if __name__ == "__main__":
    unittest.main()
