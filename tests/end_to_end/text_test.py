"""Text and tokens become rows for a language model, as a script sees it."""
import gzip
import json
import pathlib
import shutil
import struct
import unittest

from penstock_cli import Case, read_safetensors

SIZE = 32


def tokens_of(document):
    return [(document * 7 + t) % 997 for t in range(document * 37 % 61)]


def integers(tensor):
    dtype, _, data = tensor
    form = {"I64": "<q", "I32": "<i"}[dtype]
    return [number for (number,) in struct.iter_unpack(form, data)]


class TokensCase(Case):
    def setUp(self):
        super().setUp()
        (self.folder / "docs").mkdir()
        for part in range(3):
            lines = [json.dumps({"meta": {"n": d}, "input_ids": tokens_of(d)})
                     for d in range(part * 50, part * 50 + 50)]
            (self.folder / f"docs/{part}.jsonl").write_text("\n".join(lines))

    def tokens_job(self, loader=None, source=None, **tokens):
        return self.job(
            source=source or {"kind": "jsonl", "path": "docs"},
            fields={"text": {"tokens": {
                "column": "input_ids", "max_length": SIZE, "vocab_size": 1000,
                **tokens}}},
            loader={"batch_size": 4, "seed": 3,
                    "cache_dir": str(self.folder / "stores"),
                    **(loader or {})})

    def tensors(self, *arguments):
        """The tensors of the batches, one dictionary each."""
        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        self.batches("--out", "out", *arguments)
        return [read_safetensors(path) for path in sorted(out.iterdir())]


class Packed(TokensCase):
    def test_an_epoch_has_every_document_once_between_its_boundaries(self):
        self.write_job(self.tokens_job({"tail": "exact"}))
        seen = {}
        for batch in self.tensors("--steps", "0:1000"):
            self.assertEqual(list(batch), ["input_ids", "cu_seqlens", "labels",
                                           "position_ids", "document_ids"])
            dtype, (rows, width), _ = batch["input_ids"]
            self.assertEqual((dtype, width), ("I64", SIZE))
            ids, labels, positions, documents, ends = (
                integers(batch[name]) for name in (
                    "input_ids", "labels", "position_ids", "document_ids",
                    "cu_seqlens"))
            self.assertEqual((ends[0], ends[-1]), (0, rows * SIZE))
            for begin, end in zip(ends, ends[1:]):
                (document,) = set(documents[begin:end])
                self.assertEqual(positions[begin:end],
                                 list(range(end - begin)))
                expected = ids[begin:end]
                expected[0] = -100
                if document < 0:
                    expected = [-100] * (end - begin)
                else:
                    seen.setdefault(document, []).extend(ids[begin:end])
                self.assertEqual(labels[begin:end], expected)
        self.assertEqual({d: sorted(ids) for d, ids in seen.items()},
                         {d: sorted(tokens_of(d)) for d in range(150)
                          if tokens_of(d)})

    def test_workers_tiers_and_devices_change_nothing(self):
        self.write_job(self.tokens_job(repack=True))
        expected = None
        for device in ("cpu", "sim"):
            for cache in ("ram", "disk", "auto", "none"):
                for workers in (0, 1, 2, 8):
                    lines = self.batches(
                        "--epoch", "2", "--steps", "0:1000", "--set",
                        f"device={device}", "--set", f"loader.cache={cache}",
                        "--set", f"loader.workers={workers}")
                    found = [(line["keys"], line["bytes_digest"])
                             for line in lines]
                    expected = expected or found
                    self.assertEqual(found, expected)
        self.assertGreater(len(expected), 10)

    def test_rows_that_are_in_a_store_are_mapped(self):
        self.write_job(self.tokens_job())
        self.assertEqual(self.planned_tier(), "ram")
        self.succeed("prepare", "job.json")
        self.assertEqual(self.planned_tier(), "disk")
        self.assertEqual(self.planned_tier("--set", "loader.cache=ram"), "ram")

    def planned_tier(self, *arguments):
        return self.succeed("train", "job.json", "--plan", "--json",
                            *arguments).json()["plan"]["tier"]

    def test_a_bench_and_a_held_out_side_are_packed_too(self):
        self.write_job(self.tokens_job() | {"split": {"val": 0.3}})
        val = self.tensors("--split", "val", "--steps", "0:1000")
        self.assertGreater(len(val), 2)
        train = self.tensors("--steps", "0:1000")
        documents = [
            {number for batch in side
             for number in integers(batch["document_ids"])} - {-1}
            for side in (train, val)]
        self.assertFalse(documents[0] & documents[1])

    def test_a_document_a_row_with_an_attention_mask(self):
        self.write_job(self.tokens_job(pack="none", pad_id=5))
        for batch in self.tensors("--steps", "0:10"):
            self.assertEqual(
                list(batch),
                ["input_ids", "input_ids_lengths", "labels", "position_ids",
                 "attention_mask"])
            lengths = integers(batch["input_ids_lengths"])
            _, (rows, width), _ = batch["input_ids"]
            self.assertEqual((len(lengths), max(lengths)), (rows, width))
            mask = integers(batch["attention_mask"])
            self.assertEqual(sum(mask), sum(lengths))

    def test_verify_resume_holds_in_the_middle_of_an_epoch(self):
        self.write_job(self.tokens_job(repack=True) |
                       {"train": {"epochs": 3}})
        self.succeed("verify-resume", "job.json")


def byte_tokenizer(folder):
    """A tokenizer.json of byte-level BPE without merges: a token is a byte;
    256 is <end>."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    letters = {byte: chr(byte) for byte in plain}
    letters |= {byte: chr(256 + n) for n, byte in enumerate(others)}
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": 256, "content": "<end>", "single_word": False,
                          "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True}],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False,
                          "trim_offsets": True, "use_regex": True},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True,
                    "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None,
                  "continuing_subword_prefix": "", "end_of_word_suffix": "",
                  "fuse_unk": False, "byte_fallback": False,
                  "vocab": {letters[b]: b for b in range(256)},
                  "merges": []}}))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"eos_token": "<end>"}))
    return "tokenizer.json"


class Texts(TokensCase):
    TEXTS = ["the first", "größer, later", "a special <end> inside", "x" * 50,
             "", "last\n"]

    def setUp(self):
        super().setUp()
        byte_tokenizer(self.folder)
        (self.folder / "texts.jsonl").write_text("\n".join(
            json.dumps({"text": text}) for text in self.TEXTS))

    def text_job(self, source=None, **tokens):
        return self.job(
            source=source or {"kind": "jsonl", "path": "texts.jsonl"},
            fields={"tokens": {"tokens": {
                "column": "text", "tokenizer": "tokenizer.json",
                "max_length": SIZE, **tokens}}},
            loader={"batch_size": 2, "shuffle": False, "tail": "exact",
                    "cache_dir": str(self.folder / "stores")})

    def documents(self, **changes):
        self.write_job(self.text_job(**changes))
        found = {}
        for batch in self.tensors("--steps", "0:100"):
            ids, documents = (integers(batch[name]) for name in (
                "input_ids", "document_ids"))
            for token, document in zip(ids, documents):
                found.setdefault(document, []).append(token)
        found.pop(-1, None)
        return found

    @staticmethod
    def ids_of(text):
        parts = [list(part.encode()) for part in text.split("<end>")]
        return parts[0] + [id for part in parts[1:] for id in [256, *part]]

    def test_become_tokens_and_special_ones_in_them_too(self):
        found = self.documents()
        expected = {n: self.ids_of(text) for n, text in enumerate(self.TEXTS)
                    if text}
        self.assertEqual({n: sorted(ids) for n, ids in found.items()},
                         {n: sorted(ids) for n, ids in expected.items()})
        self.assertEqual(found[0], expected[0])

    def test_end_with_a_token_where_that_is_asked_for(self):
        found = self.documents(eos=True)
        self.assertEqual(found[4], [256])
        self.assertEqual(found[0], [*self.ids_of("the first"), 256])

    def test_end_with_a_token_that_is_named(self):
        expected = self.documents(eos=True)
        stored = self.succeed("prepare", "job.json", "--json").json()
        self.assertEqual(self.documents(eos="<end>"), expected)
        self.assertEqual(self.succeed("prepare", "job.json", "--json").json()[
            "store"], stored["store"])
        (self.folder / "tokenizer_config.json").unlink()
        self.assertEqual(self.documents(eos="<end>"), expected)
        self.write_job(self.text_job(eos="<fin>"))
        self.refuse("request", "settings.value", "no token '<fin>'")
        self.write_job(self.text_job(eos=5))
        self.refuse("request", "settings.value", "found 5")

    def test_another_end_is_another_store(self):
        tokenizer = json.loads((self.folder / "tokenizer.json").read_text())
        end = tokenizer["added_tokens"][0]
        tokenizer["added_tokens"].append({**end, "id": 257, "content": "<fin>"})
        (self.folder / "tokenizer.json").write_text(json.dumps(tokenizer))
        self.assertEqual(self.documents(eos=True)[4], [256])
        self.succeed("prepare", "job.json")
        (self.folder / "tokenizer_config.json").write_text(
            json.dumps({"eos_token": "<fin>"}))
        why = self.succeed("cache", "why", "job.json", "--json").json()
        self.assertFalse(why["hit"])
        self.assertIn("eos", json.dumps(why["differs"]))
        self.assertEqual(self.documents(eos=True)[4], [257])

    def test_rows_are_filled_up_with_the_end_where_no_padding_is_named(self):
        self.write_job(self.text_job())
        batch = self.tensors("--steps", "0:100")[-1]
        self.assertEqual(
            {token for token, document in zip(
                integers(batch["input_ids"]), integers(batch["document_ids"]))
             if document == -1}, {256})

    def test_are_the_same_from_files_lines_and_databases(self):
        expected = self.documents()
        texts = [text for text in self.TEXTS if text]
        (self.folder / "lines.txt").write_text("\n".join(
            text.strip() for text in texts))
        self.database(list(enumerate(self.TEXTS)),
                      "id INTEGER PRIMARY KEY, text TEXT")
        found = self.documents(source={
            "kind": "sqlite", "path": "d.sqlite", "table": "t"})
        self.assertEqual(found, expected)
        found = self.documents(source={"kind": "text", "path": "lines.txt",
                                       "by": "line"})
        self.assertEqual(
            [sorted(found[n]) for n in range(len(texts))],
            [sorted(self.ids_of(text.strip())) for text in texts])

    def test_workers_change_nothing(self):
        self.write_job(self.text_job())
        expected = None
        for cache in ("ram", "none", "disk"):
            for workers in (0, 1, 2, 8):
                found = [line["bytes_digest"] for line in self.batches(
                    "--steps", "0:100", "--set", f"loader.cache={cache}",
                    "--set", f"loader.workers={workers}")]
                expected = expected or found
                self.assertEqual(found, expected)

    def test_another_tokenizer_is_another_store_and_cache_why_says_so(self):
        self.write_job(self.text_job())
        self.succeed("prepare", "job.json")
        path = self.folder / "tokenizer.json"
        path.rename(self.folder / "moved.json")
        moved = ("--set", "fields.tokens.tokens.tokenizer=moved.json")
        self.assertTrue(self.succeed("prepare", "job.json", "--json", *moved)
                        .json()["already"])
        changed = (self.folder / "moved.json").read_text().replace(
            '"<end>"', '"<fin>"')
        path.write_text(changed)
        (self.folder / "tokenizer_config.json").write_text(
            json.dumps({"eos_token": "<fin>"}))
        why = self.succeed("cache", "why", "job.json", "--json").json()
        self.assertFalse(why["hit"])
        self.assertIn("tokenizer", json.dumps(why["differs"]))

    def test_bytes_that_are_no_utf8_are_replaced_and_counted_or_bad(self):
        (self.folder / "odd.txt").write_bytes(b"good\nb\xffd\n")
        source = {"kind": "text", "path": "odd.txt", "by": "line"}
        found = self.documents(source=source)
        self.assertEqual(found[1], list("b\ufffdd".encode()))
        done = self.succeed("prepare", "job.json", "--json").json()
        self.assertEqual((done["documents"], done["invalid_utf8"]), (2, 1))
        self.write_job(self.text_job(source=source, invalid_utf8="bad"))
        self.refuse("transform", "data.bad_rows", "expected UTF-8")

    def test_what_a_tokenizer_cannot_do_is_named(self):
        for change, code, *names in (
                ({"tokenizer": "none.json"}, "file.read", "none.json"),
                ({"vocab_size": 100}, "settings.value", "ids up to 256"),
                ({"tokenizer": "", "eos": True}, "settings.value", "eos"),
                ({"column": "n"}, "source.unknown_column", "n")):
            self.write_job(self.text_job(**change))
            with self.subTest(change):
                self.refuse("request", code, *names)
        self.write_job(self.text_job(tokenizer=""))
        self.refuse("transform", "data.bad_rows", "text needs a 'tokenizer'")
        (self.folder / "tokenizer_config.json").unlink()
        self.write_job(self.text_job(eos=True))
        self.refuse("request", "settings.value", "tokenizer_config.json",
                    '"eos": "<|endoftext|>"')


class Prepare(TokensCase):
    def test_fills_the_store_that_training_then_finds(self):
        self.write_job(self.tokens_job())
        first = self.succeed("prepare", "job.json", "--json").json()
        every = [tokens_of(d) for d in range(150)]
        self.assertEqual(
            (first["documents"], first["tokens"], first["invalid_utf8"],
             first["already"]), (150, sum(map(len, every)), 0, False))
        self.assertEqual(pathlib.Path(first["store"]).stat().st_size,
                         first["bytes"])
        self.assertEqual(first["packing"]["cut"],
                         sum(len(tokens) > SIZE for tokens in every))
        self.assertGreater(first["packing"]["efficiency"], 0.9)
        again = self.succeed("prepare", "job.json", "--json").json()
        self.assertTrue(again["already"])
        self.assertEqual(again["packing"], first["packing"])
        self.assertTrue(self.succeed("cache", "why", "job.json", "--json")
                        .json()["hit"])

    def test_rows_of_another_length_are_made_of_the_same_store(self):
        self.write_job(self.tokens_job())
        self.succeed("prepare", "job.json")
        for change in ("max_length=100", "pack=wrapped", "repack=true",
                       "pack_window=10"):
            again = self.succeed(
                "prepare", "job.json", "--json", "--set",
                "fields.text.tokens." + change).json()
            self.assertTrue(again["already"], change)

    def test_exports_are_read_as_sources_with_the_same_rows(self):
        self.write_job(self.tokens_job())
        steps = ("--steps", "0:1000")
        expected = [line["bytes_digest"] for line in self.batches(*steps)]
        for form in ("megatron", "datatrove", "llmc", "raw"):
            done = self.succeed("prepare", "job.json", "--json", "--export",
                                form, form).json()["export"]
            self.assertEqual((done["format"], done["documents"]), (form, 150))
            name = "tokens.ds" if form == "datatrove" else "tokens.bin"
            source = {"kind": "token_store", "path": f"{form}/{name}"}
            job = self.tokens_job(source=source)
            says_ends = form in ("megatron", "datatrove")
            if not says_ends:
                job["loader"]["tail"] = "exact"
            self.write_job(job, form + ".json")
            found = self.batches(*steps, job=form + ".json")
            if says_ends:
                self.assertEqual([line["bytes_digest"] for line in found],
                                 expected)
        done = self.succeed("prepare", "job.json", "--json", "--export", "hf",
                            "saved").json()["export"]
        self.assertEqual((done["documents"], done["tokens"]),
                         (150, sum(len(tokens_of(d)) for d in range(150))))
        self.write_job(self.tokens_job(
            source={"kind": "hf", "path": "saved"}), "saved.json")
        self.assertEqual([line["bytes_digest"] for line in self.batches(
            *steps, job="saved.json")], expected)
        self.refuse("request", "export.format", "megatron",
                    arguments=["prepare", "job.json", "--export", "x", "y"])
        self.refuse("request", "cli.arguments", "--export",
                    arguments=["prepare", "job.json", "job.json", "--export",
                               "raw", "y"])
        job = self.tokens_job()
        job["fields"] = {"n": {"columns": ["meta.n"]}}
        self.write_job(job)
        self.refuse("request", "export.no_tokens", "tokens",
                    arguments=["prepare", "job.json", "--export", "raw", "y"])

    def test_a_saved_data_set_is_what_other_libraries_read(self):
        self.write_job(self.tokens_job())
        self.succeed("prepare", "job.json", "--export", "hf", "saved")
        expected = [tokens_of(d) for d in range(150)]
        try:
            import pyarrow
        except ImportError:
            self.skipTest("needs pyarrow")
        (file,) = (self.folder / "saved").glob("data-*.arrow")
        with pyarrow.memory_map(str(file)) as stream:
            table = pyarrow.ipc.open_stream(stream).read_all()
        table.validate(full=True)
        self.assertEqual(table.schema.field("input_ids").type,
                         pyarrow.list_(pyarrow.int32()))
        self.assertEqual(table["input_ids"].to_pylist(), expected)
        try:
            import datasets
        except ImportError:
            return
        loaded = datasets.load_from_disk(str(self.folder / "saved"))
        self.assertEqual(loaded["input_ids"][:], expected)
        # Nothing was cast: the rows are those of the mapped file.
        self.assertEqual(loaded.data.schema.field("input_ids").type,
                         table.schema.field("input_ids").type)
        self.assertEqual(loaded.with_format("arrow")[:].column(0)
                         .chunk(0).values.to_pylist()[:5], sum(expected, [])[:5])

    def test_group_by_length_leaves_little_padding(self):
        self.write_job(self.tokens_job({"batch_size": 8, "tail": "exact"},
                                       pack="none", max_length=64))
        widths = {}
        for groups in ("false", "true", "hf"):
            batches = self.tensors("--steps", "0:1000", "--set",
                                   "loader.group_by_length=" + groups)
            widths[groups] = sum(batch["input_ids"][1][1] *
                                 batch["input_ids"][1][0] for batch in batches)
            documents = sorted(
                tuple(integers(batch["input_ids"])) for batch in batches)
            self.assertTrue(documents)
        self.assertLess(widths["true"], 0.8 * widths["false"])
        self.assertLess(widths["hf"], 0.8 * widths["false"])
        expected = None
        for workers in (0, 1, 2, 8):
            found = [line["bytes_digest"] for line in self.batches(
                "--steps", "0:100", "--set", "loader.group_by_length=true",
                "--set", f"loader.workers={workers}")]
            expected = expected or found
            self.assertEqual(found, expected)
        self.write_job(self.tokens_job({"group_by_length": True}))
        self.refuse("request", "loader.group_by_length", "packed")
        self.write_job(self.tokens_job({"group_by_length": True,
                                        "shuffle": False}, pack="none"))
        self.refuse("request", "settings.value", "group_by_length")

    def test_several_jobs_in_one_call(self):
        self.write_job(self.tokens_job())
        self.write_job(self.tokens_job(pack="none"), "other.json")
        found = self.succeed("prepare", "job.json", "other.json",
                             "--json").json()
        self.assertEqual([job["job"] for job in found["jobs"]],
                         ["job.json", "other.json"])
        self.assertIn(" tokens were prepared before",
                      self.succeed("prepare", "job.json").out)

    def test_says_what_is_missing(self):
        self.refuse("request", "cli.arguments", "no job file",
                    arguments=["prepare"])
        job = self.tokens_job()
        source = job.pop("source")
        fields = job.pop("fields")
        self.write_job(job | {"sources": [
            {"source": source, "fields": fields}] * 2})
        self.refuse("request", "prepare.sources",
                    arguments=["prepare", "job.json"])
        self.refuse("request", "packing.mixed", "concatenated",
                    arguments=["batch", "job.json"])


class Bad(TokensCase):
    def bad_line(self, line):
        with open(self.folder / "docs/1.jsonl", "a", encoding="utf-8") as file:
            file.write("\n" + line)
        self.write_job(self.tokens_job())

    def test_a_line_that_is_no_object(self):
        self.bad_line("[1, 2]")
        self.refuse("transform", "data.bad_rows", "1.jsonl:51", "JSON object")

    def test_a_line_that_lacks_the_field(self):
        self.bad_line('{"other": 1}')
        self.refuse("transform", "data.bad_rows", "NULL")

    def test_a_token_beyond_the_vocabulary(self):
        self.bad_line('{"input_ids": [3, 1000]}')
        self.refuse("transform", "data.bad_rows", "token 1 is 1000",
                    "below 1000")

    def test_a_packed_file_that_is_cut_off(self):
        packed = gzip.compress(json.dumps({"input_ids": [1]}).encode() * 99)
        (self.folder / "docs/9.jsonl.gz").write_bytes(packed[:-9])
        self.write_job(self.tokens_job())
        self.refuse("source", "files.damaged", "9.jsonl.gz")

    def test_settings_that_contradict_each_other(self):
        self.write_job(self.tokens_job(pack="wrapped", repack=True))
        self.refuse("request", "settings.value", "repack")
        job = self.tokens_job()
        job["fields"]["n"] = {"columns": ["meta.n"]}
        self.write_job(job)
        self.refuse("request", "packing.fields", "none")
        self.write_job(self.tokens_job({"weights": "meta.n"}))
        self.refuse("request", "packing.drawn")

    def test_a_column_that_holds_no_tokens(self):
        job = self.tokens_job()
        job["fields"]["text"]["tokens"]["column"] = "meta.n"
        self.write_job(job)
        self.refuse("request", "fields.tokens", "meta.n")


class Documents(Case):
    def setUp(self):
        super().setUp()
        folder = self.folder / "texts"
        (folder / "more").mkdir(parents=True)
        (folder / "a.txt").write_text("first line\n\nthird line\n")
        (folder / "b.md").write_text("another\r\nfile")
        with gzip.open(folder / "more/c.txt.gz", "wt") as file:
            file.write("packed\n")
        (folder / "left.out").write_text("no")

    def texts(self, **source):
        self.write_job(self.job(
            source={"kind": "text", "path": "texts", **source},
            fields={"bytes": {"text": {"column": "text"}}},
            loader={"batch_size": 100, "shuffle": False, "tail": "exact"}))
        self.batches("--steps", "0:1", "--out", "out")
        (file,) = (self.folder / "out").iterdir()
        tensors = read_safetensors(file)
        ends = integers(tensors["bytes_cu_seqlens"])
        shutil.rmtree(self.folder / "out")
        raw = tensors["bytes"][2]
        return [raw[a:b].decode("utf-8", "surrogateescape")
                for a, b in zip(ends, ends[1:])]

    def test_are_files(self):
        self.assertEqual(self.texts(), ["first line\n\nthird line\n",
                                        "another\r\nfile", "packed\n"])

    def test_are_lines(self):
        self.assertEqual(self.texts(by="line"),
                         ["first line", "third line", "another", "file",
                          "packed"])

    def test_are_what_a_pattern_names(self):
        self.assertEqual(self.texts(path="texts/**/*.txt.gz"), ["packed\n"])

    def test_are_bytes_in_the_encoding_that_is_named(self):
        (self.folder / "texts/a.txt").write_bytes(b"\xe4")
        self.assertEqual(self.texts(path="texts/a.txt"), ["\udce4"])
        self.assertEqual(self.texts(path="texts/a.txt", encoding="latin1"),
                         ["ä"])

    def test_say_which_file_they_are(self):
        lines = self.succeed("peek", "text:texts/a.txt", "--json").json()
        self.assertEqual([c["name"] for c in lines["columns"]],
                         ["text", "path"])

    def test_name_what_is_wrong(self):
        self.write_job(self.job(
            source={"kind": "text", "path": "nowhere.txt"},
            fields={"bytes": {"text": {"column": "text"}}}))
        self.refuse("source", "files.missing", "nowhere.txt")
        with open(self.folder / "large.txt", "wb") as file:
            file.truncate((1 << 30) + 1)
        self.refuse("source", "files.too_long", "large.txt", "line",
                    sets=["source.path=large.txt"])
        self.refuse("source", "files.damaged", "large.txt:1",
                    sets=["source.path=large.txt", "source.by=line"])


if __name__ == "__main__":
    unittest.main()
