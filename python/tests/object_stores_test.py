"""Files in an object store, by their URI: the program reads them, and so does
Python. tests/end_to_end/stores_test.py has all that a store may answer."""
import os
import pathlib
import sys
import unittest

import penstock
from entry import main

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]
                       / "tests" / "end_to_end"))
from s3_server import ACCESS_KEY, CLOSED, S3Server  # noqa: E402

SECRET = "s3cr3t-that-nobody-sees"
TEXT = "a,b\n" + "".join(f"{row},{row / 2}\n" for row in range(40))


class Stored(unittest.TestCase):
    def setUp(self):
        self.server = S3Server({"train-data": {"rows.csv": TEXT.encode()}})
        self.addCleanup(self.server.close)
        before = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(),
                                 os.environ.update(before)))
        os.environ.update({
            "AWS_ENDPOINT_URL": self.server.endpoint,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/none", "AWS_SHARED_CREDENTIALS_FILE": "/none"})

    def opened(self, uri):
        try:
            return penstock.Loader(uri, batch_size=8, shuffle=False,
                                   device="cpu")
        except penstock.SourceError as error:
            if error.code == "source.part_missing":
                self.skipTest("built without object stores")
            raise

    def test_a_file_is_read_by_its_uri(self):
        with self.opened("s3://train-data/rows.csv") as loader:
            self.assertEqual([int(a) for batch in loader
                              for a in batch.numpy()["a"].ravel()],
                             list(range(40)))

    def test_a_store_that_refuses_is_named_and_no_secret_is(self):
        with self.assertRaises(penstock.SourceError) as caught:
            self.opened(f"s3://{CLOSED}/rows.csv")
        said = str(caught.exception)
        for part in ("rows.csv", f"'{CLOSED}'", "AWS_ACCESS_KEY_ID"):
            self.assertIn(part, said)
        self.assertNotIn(SECRET, said)
        self.assertNotIn(ACCESS_KEY, said)


if __name__ == "__main__":
    main()
