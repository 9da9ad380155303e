"""Files in an object store: the batches of the same files on a disk, and what
is said where the store refuses. Beside a server of our own, moto's where it is
installed."""
import gzip
import importlib.util
import pathlib
import shutil
import unittest

from files_test import COLUMNS, DATA, Files
from penstock_cli import has_part, run
from s3_server import ACCESS_KEY, CLOSED, MotoServer, S3Server

SECRET = "s3cr3t-that-nobody-sees"


@unittest.skipUnless(has_part("parquet"), "built without Arrow")
class Stored(Files):
    server_of = S3Server

    def setUp(self):
        super().setUp()
        text = (self.folder / "rows.csv").read_bytes()
        parts = {f"parts/{file.name}": file.read_bytes()
                 for file in (self.folder / "parts").iterdir()}
        self.buckets = {"train-data": {
            "rows.csv": text, "packed/rows.csv.gz": gzip.compress(text),
            "a folder/rows.parquet": (DATA / "rows.parquet").read_bytes(),
            "a folder/_SUCCESS": b"", "rows.arrow":
                (DATA / "rows.arrow").read_bytes(), **parts}}
        self.server = self.server_of(self.buckets)
        self.addCleanup(self.server.close)
        self.environment = {
            "AWS_ENDPOINT_URL": self.server.endpoint,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/none", "AWS_SHARED_CREDENTIALS_FILE": "/none"}

    def run_it(self, *arguments, **variables):
        return run(*arguments, cwd=self.folder,
                   **{**self.environment, **variables})


class Read(Stored):
    SOURCES = {"csv": {"kind": "csv", "path": "s3://train-data/rows.csv"},
               "csv.gz": {"kind": "csv", "path": "s3://train-data/packed"},
               "jsonl": {"kind": "jsonl", "path": "s3://train-data/parts/"},
               "parquet": {"kind": "parquet",
                           "path": "s3://train-data/a folder"},
               "pattern": {"kind": "parquet",
                           "path": ["s3://train-data/*/rows.parquet"]},
               "arrow": {"kind": "arrow",
                         "path": "s3://train-data/rows.arrow"}}

    def test_batches_are_those_of_the_database(self):
        expected = self.digests({"kind": "sqlite", "path": "d.sqlite"})
        for name, source in self.SOURCES.items():
            for sets in ((), ("loader.cache=none", "loader.workers=2")):
                with self.subTest(name, sets=sets):
                    self.assertEqual(self.digests(source, *sets), expected)

    def test_a_uri_by_itself_and_its_options(self):
        host = self.server.endpoint.removeprefix("http://")
        for uri, variables in (
                ("s3://train-data/rows.csv", {}),
                ("csv:s3://train-data/rows.csv", {}),
                (f"s3://train-data/rows.csv?endpoint_override={host}&"
                 "scheme=http&region=us-east-1", {"AWS_ENDPOINT_URL": ""})):
            shown = self.succeed("peek", uri, "--json", **variables).json()
            self.assertEqual([c["name"] for c in shown["columns"]][:6],
                             COLUMNS[:6])
            self.assertEqual(shown["rows"], 200)


@unittest.skipUnless(importlib.util.find_spec("moto"), "without moto")
class ReadFromMoto(Read):
    server_of = MotoServer


class Refusals(Stored):
    def refused(self, uri, code, *said, kind="source", **variables):
        answer = self.run_it("peek", uri, "--json", **variables)
        self.assertNotEqual(answer.code, 0)
        for word in (code, *said):
            self.assertIn(word, answer.out + answer.err)
        self.assertNotIn(SECRET, answer.out + answer.err)
        return answer

    def test_a_bucket_that_refuses(self):
        self.refused(f"s3://{CLOSED}/rows.csv", "files.store",
                     f"s3://{CLOSED}/rows.csv", "ACCESS_DENIED",
                     "AWS_ACCESS_KEY_ID")

    def test_a_key_that_is_not_known(self):
        self.refused("s3://train-data/rows.csv", "files.store",
                     "s3://train-data/rows.csv",
                     AWS_ACCESS_KEY_ID="AKIANOBODY")

    def test_a_file_that_is_not_there(self):
        self.refused("s3://train-data/none.csv", "files.missing",
                     "s3://train-data/none.csv")
        self.refused("s3://train-data/*/none.csv", "files.missing",
                     "no file matches")
        self.refused("csv:s3://no-such-bucket/", "files.", "no-such-bucket")

    def test_a_store_that_does_not_answer(self):
        self.refused("s3://train-data/rows.csv", "files.store",
                     "AWS_ENDPOINT_URL", AWS_ENDPOINT_URL="http://127.0.0.1:9")

    def test_a_uri_with_credentials_is_refused_and_not_shown(self):
        for uri in (f"s3://id:{SECRET}@train-data/rows.csv",
                    f"csv:s3://train-data/rows.csv?secret_key={SECRET}",
                    f"s3://train-data/rows.csv?access_key={SECRET}&region=x"):
            self.refused(uri, "source.uri", "s3://***")
        self.write_job(self.job_over(
            {"kind": "csv", "path": f"s3://a:{SECRET}@train-data/rows.csv"}))
        answer = self.run_it("train", "job.json")
        self.assertEqual(answer.code, 2)
        self.assertNotIn(SECRET, answer.out + answer.err)
        self.assertFalse((self.folder / "runs").exists())

    def test_kinds_that_read_disks_alone_say_so(self):
        self.refused("token_store:s3://train-data/rows.bin", "files.store",
                     "copy the file to a disk")

    def test_a_damaged_file_is_named(self):
        self.buckets["train-data"]["bad.parquet"] = (
            DATA / "rows.parquet").read_bytes()[:-40]
        self.refused("s3://train-data/bad.parquet", "files.damaged",
                     "s3://train-data/bad.parquet")

    def test_the_secret_is_in_no_file_of_a_run(self):
        self.write_job(self.job_over(
            {"kind": "csv", "path": "s3://train-data/rows.csv"}))
        self.succeed("train", "job.json", "--json")
        for file in pathlib.Path(self.folder, "runs").rglob("*"):
            if file.is_file():
                self.assertNotIn(SECRET.encode(), file.read_bytes(), file)
        shutil.rmtree(self.folder / "runs")


if __name__ == "__main__":
    unittest.main()
