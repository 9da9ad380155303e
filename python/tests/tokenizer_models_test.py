"""penstock.Tokenizer and every family of tokenizers: what the library made of
hard texts when tests/golden/tokenizers was written, and, where it is installed,
what it makes of many more."""

import json
import os
import pathlib
import tempfile
import unittest

import penstock
from entry import main

try:
    import numpy
except ImportError:
    numpy = None
try:
    import tokenizers
    import tokenizer_files
except ImportError:
    tokenizers = None

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/tokenizers"


class Case(unittest.TestCase):
    def opened(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / "tokenizer.json"
        path.write_text(text)
        return penstock.Tokenizer(path)

    def compare(self, ours, expected):
        """`expected`: as tokenizer_files.cases makes them."""
        texts = [case["text"] for case in expected]
        for key, special in (("ids", False), ("special", True)):
            for warm in range(2):
                for case, ids in zip(
                        expected, ours.encode_batch(texts, special=special),
                        strict=True):
                    self.assertEqual(ids.tolist(), case[key],
                                     (warm, case["text"]))
        for case in expected:
            ids, offsets = ours.encode(case["text"], special=False, offsets=True)
            self.assertEqual(ids.tolist(), case["ids"], case["text"])
            self.assertEqual(offsets.tolist(),
                             [list(pair) for pair in case["offsets"]],
                             case["text"])
            self.assertEqual(ours.decode(case["ids"]), case["decoded"])
            self.assertEqual(ours.decode(case["special"], skip_special=False),
                             case["all"])
            stream = ours.decoder()
            pieces = [stream.add(one) for one in case["ids"]]
            self.assertEqual("".join(pieces) + stream.finish(), case["decoded"])


@unittest.skipIf(numpy is None, "numpy is not installed")
class Golden(Case):
    def test_each_family_gives_what_the_library_gave(self):
        files = sorted(GOLDEN.glob("*.json"))
        self.assertGreater(len(files), 20)
        for path in files:
            with self.subTest(path.stem):
                document = json.loads(path.read_text())
                self.compare(self.opened(json.dumps(document["tokenizer"])),
                             document["cases"])


@unittest.skipIf(tokenizers is None or numpy is None,
                 "the tokenizers library is not installed")
class EqualToTheLibrary(Case):
    COUNT = int(os.environ.get("PENSTOCK_TOKENIZER_TEXTS", "400"))

    def test_each_family_on_hard_texts(self):
        texts = [tokenizer_files.drawn_text(1000 + n) for n in range(self.COUNT)]
        for name, made in tokenizer_files.everything().items():
            with self.subTest(name):
                self.compare(self.opened(made.to_str()),
                             tokenizer_files.cases(made, texts))


if __name__ == "__main__":
    main()
