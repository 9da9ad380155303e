"""A loader without `fields` of a table that holds pictures or sounds."""

import contextlib
import importlib.util
import io
import json
import pathlib
import sqlite3
import tempfile
import unittest
import wave

import numpy

import penstock
from penstock import images

HAS_PYARROW = importlib.util.find_spec("pyarrow") is not None


def picture(height, width):
    return images.png_of(numpy.full((height, width, 3), 7, "uint8"))


def sound():
    file = io.BytesIO()
    with wave.open(file, "wb") as to:
        to.setnchannels(1)
        to.setsampwidth(2)
        to.setframerate(8000)
        to.writeframes((numpy.arange(8000) % 99 * 99).astype("<i2").tobytes())
    return file.getvalue()


def has_decoders():
    with tempfile.TemporaryDirectory() as folder:
        for kind, name, file in (("image", "a.png", picture(2, 2)),
                                 ("audio", "a.wav", sound())):
            of_class = pathlib.Path(folder) / kind / "x"
            of_class.mkdir(parents=True)
            (of_class / name).write_bytes(file)
            rule = {"size": 2} if kind == "image" else {"seconds": 1}
            source = "images" if kind == "image" else kind
            try:
                with penstock.Loader(f"{source}:{folder}/{kind}",
                                     {"x": {kind: rule}}) as loader:
                    loader.peek()
            except penstock.Error:
                return False
    return True


@unittest.skipUnless(has_decoders(), "built without what decodes media")
class Tables(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def database(self, blobs):
        path = pathlib.Path(self.folder) / "d.sqlite"
        with contextlib.closing(sqlite3.connect(path)) as base, base:
            base.execute("DROP TABLE IF EXISTS t")
            base.execute("CREATE TABLE t (photo BLOB, kind TEXT)")
            base.executemany("INSERT INTO t VALUES (?, ?)",
                             [(blob, "ab"[i % 2]) for i, blob in
                              enumerate(blobs)])
        return f"sqlite:{path}#t"

    def written(self, loader):
        """What the repr says to paste."""
        line = next(line for line in repr(loader).splitlines()
                    if "fields={" in line)
        return json.loads(line[line.index("fields=") + len("fields="):])

    def test_pictures_of_one_size_are_a_field_as_they_are(self):
        with penstock.Loader(self.database([picture(5, 4)] * 40),
                             batch_size=8) as loader:
            batch = loader.peek().numpy()
            self.assertEqual(batch["photo"].shape, (8, 3, 5, 4))
            self.assertTrue((batch["photo"] == 7).all())
            self.assertIn('"size": [5, 4]', repr(loader))

    def test_pictures_of_several_sizes_are_named_with_the_line_to_write(self):
        source = self.database([picture(5, 4), picture(6, 4)] * 20)
        with penstock.Loader(source, batch_size=8) as loader:
            self.assertEqual(list(loader.peek().keys()), ["kind"])
            self.assertIn("'photo' holds pictures of several sizes",
                          repr(loader))
            fields = self.written(loader)
        with penstock.Loader(source, fields, batch_size=8) as loader:
            self.assertEqual(loader.peek().numpy()["photo"].shape,
                             (8, 3, 224, 224))
            self.assertIn("kind", loader.peek())

    def test_sounds_are_named_with_the_line_to_write(self):
        source = self.database([sound()] * 20)
        with penstock.Loader(source, batch_size=8) as loader:
            self.assertIn("'photo' holds sounds", repr(loader))
            fields = self.written(loader)
        with penstock.Loader(source, fields, batch_size=8) as loader:
            self.assertIn("photo", loader.peek())

    def test_bytes_that_begin_like_a_file_are_neither_pictures_nor_sounds(self):
        numbers = numpy.arange(8, dtype="<i2").tobytes()
        for begin in (b"\xff\xff\xff\xff", b"\xff\xfb\x90\x64",
                      b"\xff\xe1", b"ID3\x03", b"OggS", b"RIFF\x08\0\0\0DATA",
                      b"BM\x10\0\0\0", b"\xff\xd8\xff\xe0", b"GIF89a",
                      b"\x89PNG\r\n\x1a\n", b"fLaC", b"FORM", b"P5 "):
            for rows in ([begin + numbers] + [numbers] * 40,
                         [begin + numbers] * 41):
                with self.subTest(begin=begin, alike=rows[0] == rows[1]):
                    with penstock.Loader(self.database(rows),
                                         batch_size=8) as loader:
                        self.assertIn("'photo' holds BLOB", repr(loader))
                        self.assertEqual(list(loader.peek().keys()), ["kind"])

    def test_one_file_among_other_bytes_does_not_make_them_files(self):
        for file in (picture(5, 4), sound()):
            rows = [file] + [b"other bytes"] * 40
            with penstock.Loader(self.database(rows), batch_size=8) as loader:
                self.assertEqual(list(loader.peek().keys()), ["kind"])
                self.assertIn("'photo' holds BLOB", repr(loader))

    def test_a_few_rows_without_a_picture_change_nothing(self):
        with penstock.Loader(self.database([None] + [picture(5, 4)] * 40),
                             batch_size=8, on_bad="skip") as loader:
            self.assertIn('"size": [5, 4]', repr(loader))

    def test_rows_without_a_picture_at_the_beginning_hide_none(self):
        source = self.database([None] * 100 + [picture(5, 4)] * 40)
        with penstock.Loader(source, batch_size=8, on_bad="skip") as loader:
            self.assertEqual(loader.peek().numpy()["photo"].shape,
                             (8, 3, 5, 4))

    def test_pictures_between_nulls_are_named_with_what_takes_them(self):
        source = self.database([None, picture(5, 4)] * 20)
        with penstock.Loader(source, batch_size=8) as loader:
            self.assertEqual(list(loader.peek().keys()), ["kind"])
            self.assertIn("left out: 'photo' holds pictures and NULL: "
                          'on_bad="skip"', repr(loader))
        with penstock.Loader(source, batch_size=8, on_bad="skip") as loader:
            self.assertEqual(len(list(loader)), 3)

    def test_a_column_of_nulls_holds_no_pictures(self):
        with penstock.Loader(self.database([None] * 40)) as loader:
            self.assertIn("'photo' holds BLOB", repr(loader))

    @unittest.skipUnless(HAS_PYARROW, "pyarrow is not installed")
    def test_nor_do_they_in_a_table_in_memory(self):
        import pyarrow

        table = pyarrow.table({"photo": [None] * 100 + [picture(5, 4)] * 40,
                               "n": list(range(140))})
        with penstock.Loader(table, batch_size=8, on_bad="skip") as loader:
            self.assertEqual(loader.peek().numpy()["photo"].shape,
                             (8, 3, 5, 4))

    def test_other_bytes_are_left_out_as_before(self):
        with penstock.Loader(self.database([b"neither"] * 40)) as loader:
            self.assertIn("'photo' holds BLOB", repr(loader))

    @unittest.skipUnless(HAS_PYARROW, "pyarrow is not installed")
    def test_structs_of_bytes_and_path_are_those_of_hugging_face(self):
        import pyarrow
        import pyarrow.parquet

        table = pyarrow.table({
            "image": [{"bytes": picture(3, 6), "path": f"{i}.png"}
                      for i in range(20)],
            "label": list(range(20))})
        path = pathlib.Path(self.folder) / "t.parquet"
        pyarrow.parquet.write_table(table, path)
        for source in str(path), table:
            with penstock.Loader(source, batch_size=4) as loader:
                self.assertEqual(
                    {name: array.shape for name, array in
                     loader.peek().numpy().items()},
                    {"image": (4, 3, 3, 6), "label": (4,)})
                self.assertIn("'image.path' names files", repr(loader))

    @unittest.skipUnless(HAS_PYARROW, "pyarrow is not installed")
    def test_paths_without_bytes_are_named_with_the_line_to_write(self):
        import pyarrow

        pathlib.Path(self.folder, "a.png").write_bytes(picture(3, 6))
        table = pyarrow.table({
            "image": [{"bytes": None, "path": "a.png"}] * 5,
            "label": list(range(5))})
        with penstock.Loader(table) as loader:
            fields = self.written(loader)
        fields["image"]["image"]["folder"] = self.folder
        with penstock.Loader(table, fields, batch_size=5) as loader:
            self.assertEqual(loader.peek().numpy()["image"].shape,
                             (5, 3, 224, 224))


if __name__ == "__main__":
    unittest.main()
