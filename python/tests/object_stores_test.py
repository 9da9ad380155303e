"""Files in an object store, by their URI: by the engine's plugin, and by pyarrow
itself where another release of it is installed. tests/end_to_end/stores_test.py
has all that a store may answer."""
import importlib.util
import io
import os
import pathlib
import sys
import unittest
import unittest.mock

import penstock
from entry import main

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]
                       / "tests" / "end_to_end"))
from s3_server import ACCESS_KEY, CLOSED, S3Server  # noqa: E402

HAVE_PYARROW = importlib.util.find_spec("pyarrow") is not None
SECRET = "s3cr3t-that-nobody-sees"
ROWS = 40
TEXT = "a,b\n" + "".join(f"{row},{row / 2}\n" for row in range(ROWS))


def table_files(rows=ROWS):
    """A table as Parquet, Arrow file and Arrow stream."""
    import pyarrow
    from pyarrow import ipc, parquet
    table = pyarrow.table({"a": list(range(rows)),
                           "b": [row / 2 for row in range(rows)]})
    files = {}
    for name, write in (
            ("rows.parquet", lambda to: parquet.write_table(
                table, to, row_group_size=7)),
            ("rows.arrow", lambda to: ipc.new_file(to, table.schema)),
            ("stream.arrow", lambda to: ipc.new_stream(to, table.schema))):
        held = io.BytesIO()
        writer = write(held)
        if writer is not None:
            writer.write_table(table, max_chunksize=7)
            writer.close()
        files[name] = held.getvalue()
    return files


class Stored(unittest.TestCase):
    way = "plugin"

    def setUp(self):
        self.files = {"rows.csv": TEXT.encode()}
        self.server = S3Server({"train-data": self.files})
        self.addCleanup(self.server.close)
        variables = unittest.mock.patch.dict(os.environ, {
            "PENSTOCK_ARROW_WAY": "scanner" if self.way == "scanner" else "",
            "AWS_ENDPOINT_URL": self.server.endpoint,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/none", "AWS_SHARED_CREDENTIALS_FILE": "/none"})
        variables.start()
        self.addCleanup(variables.stop)

    def opened(self, uri, **settings):
        try:
            return penstock.Loader(uri, batch_size=8, shuffle=False,
                                   device="cpu", **settings)
        except penstock.SourceError as error:
            if error.code == "source.part_missing" and self.way == "plugin":
                self.skipTest("built without object stores")
            raise

    def rows_of(self, uri, **settings):
        with self.opened(uri, **settings) as loader:
            return [int(a) for batch in loader
                    for a in batch.numpy()["a"].ravel()]

    def test_a_file_is_read_by_its_uri(self):
        host = self.server.endpoint.removeprefix("http://")
        for uri in ("s3://train-data/rows.csv", "s3://train-data/*.csv",
                    "csv:s3://train-data/", "s3://train-data/rows.csv?scheme="
                    f"http&region=us-east-1&endpoint_override={host}"):
            with self.subTest(uri):
                self.assertEqual(self.rows_of(uri), list(range(ROWS)))

    @unittest.skipUnless(HAVE_PYARROW, "without pyarrow")
    def test_parquet_and_arrow_files_are_read_for_any_number_of_workers(self):
        self.files.update(table_files())
        for name in ("rows.parquet", "rows.arrow", "stream.arrow"):
            for workers in (0, 1, 2, 8):
                cache = "auto" if workers == 2 else "none"
                with self.subTest(name, workers=workers, cache=cache):
                    self.assertEqual(
                        self.rows_of(f"s3://train-data/{name}",
                                     num_workers=workers, cache=cache),
                        list(range(ROWS)))

    def test_a_store_that_refuses_is_named_and_no_secret_is(self):
        with self.assertRaises(penstock.SourceError) as caught:
            self.opened(f"s3://{CLOSED}/rows.csv")
        said = str(caught.exception)
        for part in ("rows.csv", f"'{CLOSED}'", "AWS_ACCESS_KEY_ID"):
            self.assertIn(part, said)
        self.assertNotIn(SECRET, said)
        self.assertNotIn(ACCESS_KEY, said)
        self.assertEqual(caught.exception.code, "files.store")

    def test_a_file_that_is_not_there(self):
        with self.assertRaises(penstock.SourceError) as caught:
            self.opened("s3://train-data/none.csv")
        self.assertEqual(caught.exception.code, "files.missing")

    @unittest.skipUnless(HAVE_PYARROW, "without pyarrow")
    def test_what_goes_wrong_behind_the_listing_is_told_as_it_is(self):
        self.files.update(table_files(rows=10_000))
        self.files["bad.parquet"] = self.files["rows.parquet"][:-40]
        with self.assertRaises(penstock.SourceError) as caught:
            self.opened("s3://train-data/bad.parquet")
        self.assertEqual(caught.exception.code, "files.damaged")
        self.assertIn("s3://train-data/bad.parquet", str(caught.exception))
        loader = self.opened("s3://train-data/rows.parquet", cache="none")
        with loader, self.assertRaises(penstock.SourceError) as caught:
            self.server.answer_all(403)
            for _ in loader:
                pass
        self.assertEqual(caught.exception.code, "files.store")
        self.assertIn("the store reports", str(caught.exception))


@unittest.skipUnless(HAVE_PYARROW, "without pyarrow")
class ByPyarrow(Stored):
    way = "scanner"


if __name__ == "__main__":
    main()
