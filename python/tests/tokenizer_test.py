"""penstock.Tokenizer: ids of texts, equal to those of the tokenizers library
where that is installed."""

import doctest
import json
import pathlib
import pickle
import random
import tempfile
import threading
import unittest

import penstock
import penstock.tokenizer
from entry import main

try:
    import numpy
except ImportError:
    numpy = None
try:
    import tokenizers
except ImportError:
    tokenizers = None


def characters():
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(b if b in printable else next(others)) for b in range(256)]


def small_file(folder, **parts):
    """A tokenizer.json with the 256 bytes, a few merges and an added token."""
    of = characters()
    vocabulary = {character: byte for byte, character in enumerate(of)}
    merges = []
    for pair in ("t h", "th e", f"{of[32]} the", f"{of[195]} {of[169]}", "a b",
                 "b c", "ab c", "1 2", f"{of[10]} {of[10]}"):
        merges.append(pair)
        vocabulary[pair.replace(" ", "")] = len(vocabulary)
    end = {"id": len(vocabulary), "content": "<end>", "special": True,
           "normalized": False, "lstrip": False, "rstrip": False,
           "single_word": False}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False,
                  "trim_offsets": True, "use_regex": True}
    document = {"version": "1.0", "added_tokens": [end], "normalizer": None,
                "pre_tokenizer": byte_level, "decoder": byte_level,
                "post_processor": None,
                "model": {"type": "BPE", "vocab": vocabulary,
                          "merges": merges}, **parts}
    path = pathlib.Path(folder) / "tokenizer.json"
    path.write_text(json.dumps(document))
    return path


@unittest.skipIf(numpy is None, "numpy is not installed")
class Ids(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = small_file(folder.name)
        self.tokenizer = penstock.Tokenizer(self.path)

    def test_encodes_one_and_many(self):
        ids = self.tokenizer.encode("abc the")
        self.assertEqual(ids.dtype, numpy.uint32)
        self.assertEqual(ids.tolist(), [262, 258])
        many = self.tokenizer.encode_batch(["abc", "", "<end>the"])
        self.assertEqual([one.tolist() for one in many],
                         [[262], [], [265, 257]])
        self.assertEqual(self.tokenizer.encode_batch([]), [])

    def test_ids_are_the_same_with_any_number_of_threads(self):
        texts = ["the abc <end> " * (n % 700) for n in range(1000)]
        one = self.tokenizer.encode_batch(texts, threads=1)
        for threads in (None, 2, 8):
            many = self.tokenizer.encode_batch(texts, threads=threads)
            self.assertEqual(len(many), 1000)
            for a, b in zip(one, many, strict=True):
                numpy.testing.assert_array_equal(a, b)
        self.assertEqual(one[3].tolist(),
                         self.tokenizer.encode(texts[3]).tolist())

    def test_ids_stay_while_others_are_made(self):
        texts = ["the abc " * 50_000, "ab " * 400_000, "bc"]
        expected = [one.tolist() for one in self.tokenizer.encode_batch(texts)]
        kept = [self.tokenizer.encode_batch(texts) for _ in range(4)]
        del kept[1]
        kept += [self.tokenizer.encode_batch(texts[::-1])[::-1]
                 for _ in range(3)]
        self.tokenizer = None
        for batch in kept:
            self.assertEqual([one.tolist() for one in batch], expected)
            self.assertFalse(batch[0].flags.writeable)

    def test_decodes(self):
        self.assertEqual(self.tokenizer.decode([262, 258, 265]), "abc the")
        self.assertEqual(
            self.tokenizer.decode(self.tokenizer.encode("é<end>"),
                                  skip_special=False), "é<end>")

    def test_takes_the_folder_too(self):
        again = penstock.Tokenizer(self.path.parent)
        self.assertEqual(again.fingerprint, self.tokenizer.fingerprint)
        self.assertEqual(len(again), 266)
        self.assertIsNone(again.eos)
        self.assertIsNone(again.bos)

    def test_goes_to_another_process(self):
        again = pickle.loads(pickle.dumps(self.tokenizer))
        self.assertEqual(again.encode("the é").tolist(),
                         self.tokenizer.encode("the é").tolist())

    def test_many_threads_get_the_same_ids(self):
        texts = ["the abc " * n for n in range(200)]
        expected = [one.tolist() for one in self.tokenizer.encode_batch(texts)]
        found = []

        def work():
            found.append([one.tolist()
                          for one in self.tokenizer.encode_batch(texts)])

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [expected] * 8)

    def test_what_is_no_text_is_refused(self):
        for texts, says in ((["a", 3], r"texts\[1\] is of the type int"),
                            (["a", None], r"texts\[1\] is of the type None"),
                            ("abc", r"a list of texts; .*encode\(text\)")):
            with self.assertRaisesRegex(TypeError, says):
                self.tokenizer.encode_batch(texts)
        with self.assertRaises(UnicodeEncodeError):
            self.tokenizer.encode("\ud800")

    def test_a_part_that_is_not_known_is_refused_by_name(self):
        path = small_file(self.path.parent, normalizer={"type": "New"})
        with self.assertRaisesRegex(penstock.RequestError, "'New'") as caught:
            penstock.Tokenizer(path)
        self.assertEqual(caught.exception.code, "tokenizer.part")

    def test_the_examples_run(self):
        found = doctest.testmod(penstock.tokenizer)
        self.assertEqual(found.failed, 0)
        self.assertGreater(found.attempted, 5)


CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
WORD = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]%s[\p{Ll}\p{Lm}\p{Lo}\p{M}]%s"
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SHORT = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
ANY = r"[^\r\n\p{L}\p{N}]?"
DEEPSEEK = [
    r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]"""
    r"?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]
PATTERNS = {
    "cl100k": [CL100K], "qwen2": [CL100K.replace("{1,3}", "")],
    "o200k": [ANY + WORD % ("*", "+") + SHORT + "|" + ANY + WORD % ("+", "*") +
              SHORT + r"|\p{N}{1,3}" + TAIL],
    "tekken": [ANY + WORD % ("*", "+") + "|" + ANY + WORD % ("+", "*") +
               r"|\p{N}" + TAIL],
    "deepseek": DEEPSEEK}
PIECES = ["'s", "'LL", "'ſ", "'ﬆ", "ŉ", "\xa0", "\u3000", "\u2028", "\x85",
          "\u200b", "\ufeff", "\r\n", "\n\n \n", "²", "½", "Ⅻ", "１２", "٣",
          "\U0001f468\u200d\U0001f469", "漢字かな", "हिन्दी", "a" * 70, "-" * 100,
          "\U0001e900", "\U00011382\U000113c9", "\u0897", "e\u0301",
          "a\u0316\u0301", "\u1100\u1161\u11a8", "<end>", "A日B", "aBcD", "//\n/",
          "\n" + " " * 80 + "\n", "the", " the", "abc", "12345", "    "]


def drawn_text(seed):
    random.seed(seed)
    text = ""
    for _ in range(random.randint(1, 60)):
        kind = random.random()
        if kind < 0.45:
            text += random.choice("'' \n\r\tabstrevlLMD!/.-1_" +
                                  chr(random.randint(1, 127)))
        elif kind < 0.75:
            text += random.choice(PIECES)
        else:
            most = random.choice([0x250, 0x3000, 0xA000, 0x110000])
            code = random.randrange(most)
            text += "x" if 0xD800 <= code < 0xE000 else chr(code)
    return text


@unittest.skipIf(tokenizers is None or numpy is None,
                 "the tokenizers library is not installed")
class EqualToTheLibrary(unittest.TestCase):
    TEXTS = [drawn_text(seed) for seed in range(1500)]

    def check(self, **parts):
        with tempfile.TemporaryDirectory() as folder:
            path = small_file(folder, **parts)
            library = tokenizers.Tokenizer.from_file(str(path))
            library.no_truncation()  # as transformers does by default
            library.no_padding()
            ours = penstock.Tokenizer(path)
            for special in (True, False):
                expected = [one.ids for one in library.encode_batch(
                    self.TEXTS, add_special_tokens=special)]
                for text, ids, found in zip(
                        self.TEXTS, expected,
                        ours.encode_batch(self.TEXTS, special=special),
                        strict=True):
                    self.assertEqual(found.tolist(), ids, repr(text))
            for ids in expected[:300]:
                for skip in (True, False):
                    self.assertEqual(
                        ours.decode(ids, skip_special=skip),
                        library.decode(ids, skip_special_tokens=skip))

    def test_of_each_family(self):
        self.check()
        byte_level = {"type": "ByteLevel", "add_prefix_space": False,
                      "trim_offsets": True, "use_regex": False}
        for name, patterns in PATTERNS.items():
            with self.subTest(name):
                splits = [{"type": "Split", "pattern": {"Regex": pattern},
                           "behavior": "Isolated", "invert": False}
                          for pattern in patterns]
                self.check(pre_tokenizer={
                    "type": "Sequence", "pretokenizers": [*splits, byte_level]})

    def test_of_composed_text(self):
        self.check(normalizer={"type": "NFC"})

    def test_of_a_template_whatever_the_file_says_of_lengths(self):
        self.check(
            truncation={"max_length": 20, "stride": 0, "direction": "Right",
                        "strategy": "LongestFirst"},
            padding={"strategy": {"Fixed": 40}, "direction": "Right",
                     "pad_to_multiple_of": None, "pad_id": 0,
                     "pad_type_id": 0, "pad_token": "!"},
            post_processor={
                "type": "TemplateProcessing", "single": [
                    {"SpecialToken": {"id": "<end>", "type_id": 0}},
                    {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                         {"Sequence": {"id": "B", "type_id": 1}}],
                "special_tokens": {"<end>": {"id": "<end>", "ids": [265],
                                             "tokens": ["<end>"]}}})

    def test_of_added_tokens_with_their_marks(self):
        added = [{"id": 265 + at, "content": content, "special": False,
                  "normalized": at % 2 == 0, "lstrip": "l" in marks,
                  "rstrip": "r" in marks, "single_word": "w" in marks}
                 for at, (content, marks) in enumerate(
                     [("<end>", "l"), ("éx", "r"), ("the", "w"), ("'s", "lr"),
                      ("e\u0301", ""), ("thes", "w"), ("漢字", "")])]
        added[2]["id"] = 257  # is in the vocabulary
        for at, token in enumerate(added[3:]):
            token["id"] = 267 + at
        self.check(added_tokens=added, normalizer={"type": "NFC"})


if __name__ == "__main__":
    main()
