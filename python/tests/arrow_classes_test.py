"""Classes that Parquet and Arrow files declare, in both ways of reading."""

import json

from arrow_files_test import HAVE_PYARROW, Case
from entry import main

if HAVE_PYARROW:
    import pyarrow
    from pyarrow import ipc, parquet


class Suite:
    """What is tested in both ways; a Case beside it."""

    def test_declared_classes_keep_their_order(self):
        sizes = ["small", "large", "none"]
        codes = [1, 0, None, 1] * 500

        def dictionary(values, ordered):
            return pyarrow.DictionaryArray.from_arrays(
                pyarrow.array(codes, pyarrow.int8()), values, ordered=ordered)
        table = pyarrow.table({
            "ordered": dictionary(sizes, True),
            "pandas": dictionary(sizes, False),
            "neither": dictionary(sizes, False),
            "label": pyarrow.array(code or 0 for code in codes)})
        table = table.replace_schema_metadata({
            "pandas": json.dumps({"columns": [{
                "field_name": "pandas", "pandas_type": "categorical"}]}),
            "huggingface": json.dumps({"info": {"features": {"label": {
                "_type": "ClassLabel", "names": ["zeta", "alpha"]}}}})})
        other = table.set_column(0, "ordered", dictionary(sizes[::-1], True))
        paths = self.written(
            table, "alike.parquet", "alike_file.arrow", "alike.arrow") + \
            self.written(pyarrow.concat_tables([table, other]),
                         "differing.parquet", "differing.arrow")
        expected = {"pandas": sizes, "label": ["zeta", "alpha"],
                    "neither": ["large", "small"]}
        for path in paths:
            alike = path.startswith("alike")
            with self.subTest(path), self.loader(
                    str(self.files.folder / path),
                    {name: {"category": {"column": name}}
                     for name in table.column_names}) as loader:
                batch = next(iter(loader)).numpy()
                self.assertEqual(
                    {name: loader.statistics[name]["classes"]
                     for name in table.column_names},
                    {**expected, "ordered": sizes if alike else
                     sorted(sizes)})
                self.assertEqual(batch["pandas"][:4].tolist(), [1, 0, 3, 1])
                self.assertEqual(batch["label"][:4].tolist(), [1, 0, 0, 1])

    def written(self, table, *names):
        """Files that hold it, in several chunks."""
        for name in names:
            path = str(self.files.folder / name)
            if name.endswith(".parquet"):
                parquet.write_table(table, path, row_group_size=700)
                continue
            write = ipc.new_file if name.endswith("file.arrow") else \
                ipc.new_stream
            with write(path, table.schema) as writer:
                writer.write_table(table, 700)
        return names


class ByThePlugin(Suite, Case):
    way = "plugin"


class ByPyarrow(Suite, Case):
    way = "scanner"


if __name__ == "__main__":
    main()
