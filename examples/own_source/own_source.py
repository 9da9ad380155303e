"""Your own source, by position: the lines of a text file. Every line is a
JSON list here, and becomes a set of two numbers."""
import os
import sys

import penstock


class Lines:
    """The lines of a file, and how long each of them is."""

    columns = {"line": "json", "bytes": "int64"}

    def __init__(self, path):
        self.path, self.starts = path, [0]
        with open(path, "rb") as file:
            for line in file:
                self.starts.append(self.starts[-1] + len(line))
        self.version = os.stat(path).st_mtime_ns

    def __len__(self):
        return len(self.starts) - 1

    def read(self, positions):
        lines = []
        with open(self.path, "rb") as file:
            for position in positions:
                file.seek(self.starts[position])
                lines.append(file.readline().rstrip(b"\n"))
        return {"line": lines, "bytes": [len(line) for line in lines]}


if __name__ == "__main__":
    loader = penstock.open({
        "source": Lines(sys.argv[1] if len(sys.argv) > 1 else "points.jsonl"),
        "fields": {"points": {"json_set": {"column": "line",
                                           "keys": ["x", "y"], "max": 3},
                              "standardize": True},
                   "bytes": {"columns": ["bytes"], "dtype": "int64"}},
        "loader": {"batch_size": 2, "shuffle": True, "tail": "exact"},
        "device": "cpu"})
    for batch in loader:
        print(batch.ids.tolist(), batch.points.numpy().shape,
              batch.bytes.numpy().ravel().tolist())
