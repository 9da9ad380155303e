"""Chats, and prompts with their completions, become rows of which only what the
model is to write is a target."""
import json
import os
import pathlib
import shutil
import tempfile
import unittest

import numpy as np

import penstock
from entry import main
from tokenizer_test import small_file

try:
    import jinja2
    import jinja2.ext
    from jinja2.sandbox import ImmutableSandboxedEnvironment
except ImportError:
    jinja2 = None

TEMPLATE = ("{%- for message in messages %}\n    {{- '<|' + message.role + '|>' + "
            "message.content + '<end>' }}\n{%- endfor %}\n{%- if "
            "add_generation_prompt %}\n    {{- '<|assistant|>' }}\n{%- endif %}\n")
END = 265


def chat(number, sharegpt=False):
    turns = []
    for turn in range(1 + number % 4):
        turns.append(("user", f"the {number} " + "abc" * turn))
        turns.append(("assistant", "é the " * (turn + number % 3)))
    if sharegpt:
        names = {"user": "human", "assistant": "gpt"}
        return [{"from": names[role], "value": text} for role, text in turns]
    return [{"role": role, "content": text} for role, text in turns]


class Chats(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-chats-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.tokenizer = small_file(self.folder)
        self.config({"chat_template": TEMPLATE, "eos_token": "<end>"})

    def config(self, document):
        (self.folder / "tokenizer_config.json").write_text(json.dumps(document))

    def rows(self, rows, workers=0, **options):
        """The lines of every batch of an epoch, in the order of the file."""
        path = self.folder / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        loader = penstock.Loader(
            str(path), {"tokens": {"tokens": {
                "tokenizer": str(self.tokenizer), "pack": "none",
                "max_length": 4096, **options}}},
            4, shuffle=False, device="cpu", drop_last=False,
            num_workers=workers)
        self.addCleanup(loader.close)
        found = []
        for batch in loader:
            arrays = batch.numpy()
            for ids, labels, mask in zip(
                    arrays["input_ids"], arrays["labels"],
                    arrays["attention_mask"], strict=True):
                size = int(mask.sum())
                found.append((ids[:size].tolist(), labels[:size].tolist()))
        return found

    def expected(self, messages):
        ids, targets = penstock.Tokenizer(self.tokenizer).encode_chat(messages)
        labels = [int(one) if target else -100
                  for one, target in zip(ids, targets, strict=True)]
        return ids.tolist(), [-100, *labels[1:]]

    def test_a_chat_is_its_text_and_its_answers_are_targets(self):
        tokenizer = penstock.Tokenizer(self.tokenizer)
        messages = chat(1)
        text = "".join(f"<|{m['role']}|>{m['content']}<end>" for m in messages)
        self.assertEqual(tokenizer.render(messages), text)
        self.assertEqual(tokenizer.render(messages[:1], prompt=True),
                         "<|user|>the 1 <end><|assistant|>")
        ids, targets = tokenizer.encode_chat(messages)
        self.assertEqual(ids.tolist(),
                         tokenizer.encode(text, special=False).tolist())
        answers = [tokenizer.decode(part.tolist(), skip_special=False)
                   for part in np.split(ids, np.flatnonzero(np.diff(targets)) + 1)]
        self.assertEqual(answers[1::2], [m["content"] + "<end>"
                                         for m in messages[1::2]])

    def test_any_number_of_workers_gives_the_same_rows(self):
        chats = [chat(n) for n in range(30)]
        wanted = [self.expected(one) for one in chats]
        for workers in (0, 1, 2, 8):
            self.assertEqual(self.rows([{"messages": one} for one in chats],
                                       workers, column="messages", chat=True),
                             wanted)

    def test_sharegpt_gives_the_same(self):
        rows = [{"conversations": chat(n, sharegpt=True)} for n in range(9)]
        self.assertEqual(self.rows(rows, column="conversations", chat=True),
                         [self.expected(chat(n)) for n in range(9)])

    def test_a_template_of_a_file_says_itself_what_is_generated(self):
        file = self.folder / "own.jinja"
        file.write_text("{% for m in messages %}{% if m.role == 'assistant' %}"
                        "{% generation %}{{ m.content }}{% endgeneration %}"
                        "{% else %}{{ m.content }}{% endif %}{% endfor %}")
        [(ids, labels)] = self.rows(
            [{"m": [{"role": "user", "content": "ab"},
                    {"role": "assistant", "content": "xy"}]}],
            column="m", chat=True, chat_template=str(file))
        self.assertEqual(len(ids), 3)
        self.assertEqual(labels, [-100, *b"xy"])

    def test_tools_come_from_a_column_of_their_own(self):
        file = self.folder / "tools.jinja"
        file.write_text("{% for tool in tools or [] %}{{ tool.name }}{% endfor %}"
                        "{% for m in messages %}{% if m.role == 'assistant' %}"
                        "{% generation %}{{ m.content }}{% endgeneration %}"
                        "{% else %}{{ m.content }}{% endif %}{% endfor %}")
        messages = [{"role": "user", "content": "q"},
                    {"role": "assistant", "content": "xy"}]
        tools = [{"name": "say"}, {"name": "go"}]
        rows = self.rows([{"m": messages, "t": tools}, {"m": messages},
                          {"m": messages, "t": None}],
                         column="m", chat=True, tools="t",
                         chat_template=str(file))
        tokenizer = penstock.Tokenizer(self.tokenizer)
        self.assertEqual(tokenizer.render(messages, tools=tools, template=file),
                         "saygoqxy")
        plain = tokenizer.encode("qxy", special=False).tolist()
        self.assertEqual([ids for ids, _ in rows],
                         [tokenizer.encode("saygoqxy", special=False).tolist(),
                          plain, plain])
        self.assertEqual(rows[0][1][-2:], list(b"xy"))
        ids, targets = tokenizer.encode_chat(messages, tools=tools,
                                             template=file)
        self.assertEqual((ids.tolist(), int(targets.sum())), (rows[0][0], 2))
        # What an object holds are columns of their own: "t.name".
        with self.assertRaisesRegex(penstock.Error, "does not exist"):
            self.rows([{"m": messages, "t": {"name": "say"}}], column="m",
                      chat=True, tools="t", chat_template=str(file))

    def test_a_prompt_is_no_target(self):
        [(ids, labels)] = self.rows([{"prompt": "the", "answer": "xyz"}],
                                    column="prompt", completion="answer", eos=True)
        self.assertEqual(ids, [257, *b"xyz", END])
        self.assertEqual(labels, [-100, *b"xyz", END])

    def test_packed_rows_keep_their_targets(self):
        path = self.folder / "rows.jsonl"
        rows = [{"p": "ab" * (n % 5), "c": "xyz" * (n % 7)} for n in range(60)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        loader = penstock.Loader(
            str(path), {"tokens": {"tokens": {
                "column": "p", "completion": "c", "max_length": 64,
                "tokenizer": str(self.tokenizer)}}}, 2, device="cpu",
            drop_last=False)
        self.addCleanup(loader.close)
        seen = 0
        for batch in loader:
            arrays = batch.numpy()
            ids, labels = arrays["input_ids"].ravel(), arrays["labels"].ravel()
            self.assertLess(int(ids.max()), 266)
            chosen = labels != -100
            np.testing.assert_array_equal(ids[chosen], labels[chosen])
            self.assertLessEqual(set(labels[chosen].tolist()), set(b"xyz"))
            seen += int(chosen.sum())
        # The first token of a document is never a target.
        self.assertEqual(seen, sum(len(row["c"]) - (not row["p"] and row["c"] != "")
                                   for row in rows))

    def test_a_bad_chat_is_a_bad_row(self):
        for row, says in (({"m": "hello"}, "expected a list"),
                          ({"m": []}, "no messages"),
                          ({"m": [{"role": "user"}]}, "content"),
                          ({"m": [{"text": "a"}]}, "role")):
            with self.assertRaisesRegex(penstock.Error, says) as caught:
                self.rows([{"m": chat(0)}, row], column="m", chat=True)
            self.assertEqual(caught.exception.code, "data.bad_rows")

    def test_settings_that_do_not_go_together(self):
        for options, code in (
                ({"chat": True, "completion": "c"}, None),
                ({"chat_template": "x.jinja"}, None),
                ({"tools": "c"}, None),
                ({"chat": True, "tokenizer": ""}, None)):
            with self.assertRaises(penstock.RequestError):
                self.rows([{"m": "a", "c": "b"}], column="m", **options)
        self.config({})
        with self.assertRaises(penstock.RequestError) as caught:
            self.rows([{"m": chat(0)}], column="m", chat=True)
        self.assertEqual(caught.exception.code, "tokenizer.template")


@unittest.skipIf(jinja2 is None, "jinja2 is not installed")
class EqualToJinja(unittest.TestCase):
    """With PENSTOCK_CHAT_TEMPLATES, a folder such as trl/chat_templates of the
    wheel of trl: each of its templates renders what jinja2 makes of it, as
    transformers calls it."""

    CHATS = [
        [("user", "Hello")], [("user", "Hi"), ("assistant", "Hello there")],
        [("system", " Be nice. \n"), ("user", " q1 "), ("assistant", "a1\n"),
         ("user", "q2"), ("assistant", "a2")],
        [("user", "a"), ("assistant", "<think>\nsome\n</think>\n\nresult"),
         ("user", "b"), ("assistant", "<think>x</think>y")],
        [("assistant", "first")], [("user", "a"), ("user", "b")],
        [("system", "only")], [("user", "日本 é 😀"), ("assistant", "答え")],
        [("odd", "x")]]

    def environment(self):
        class Generation(jinja2.ext.Extension):
            tags = {"generation"}

            def parse(self, parser):
                next(parser.stream)
                return parser.parse_statements(["name:endgeneration"],
                                               drop_needle=True)

        def refuse(why):
            raise jinja2.exceptions.TemplateError(why)

        made = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True,
            extensions=[Generation, jinja2.ext.loopcontrols])
        made.filters["tojson"] = lambda of, indent=None, **_: json.dumps(
            of, ensure_ascii=False, indent=indent)
        made.globals["raise_exception"] = refuse
        return made

    def test_templates_render_what_jinja_makes_of_them(self):
        folder = os.environ.get("PENSTOCK_CHAT_TEMPLATES", "")
        templates = [TEMPLATE, *(path.read_text() for path in sorted(
            pathlib.Path(folder).glob("*.jinja")) if folder)]
        tokens = {"bos_token": "<s>", "eos_token": "</s>"}
        with tempfile.TemporaryDirectory() as scratch:
            small_file(scratch)
            (pathlib.Path(scratch) / "tokenizer_config.json").write_text(
                json.dumps(tokens))
            ours = penstock.Tokenizer(scratch)
            file = pathlib.Path(scratch) / "t.jinja"
            for number, template in enumerate(templates):
                file = file.with_name(f"{number}.jinja")
                file.write_text(template)
                theirs = self.environment().from_string(template)
                for turns in self.CHATS:
                    messages = [{"role": role, "content": text}
                                for role, text in turns]
                    self.compare(ours, file, theirs, messages, tokens)

    TOOLS = [{"type": "function", "function": {
        "name": "weather", "description": "of a \"place\", größer",
        "parameters": {"type": "object", "properties": {
            "place": {"type": "string", "description": "a <town> & more"},
            "days": {"type": "integer"}}, "required": ["place"]}}}]

    def compare(self, ours, file, theirs, messages, tokens):
        for prompt, tools in ((False, None), (True, None), (False, self.TOOLS),
                              (True, self.TOOLS)):
            try:
                wanted = theirs.render(
                    messages=messages, add_generation_prompt=prompt, tools=tools,
                    documents=None, **tokens)
            except jinja2.exceptions.TemplateError:
                with self.assertRaises(penstock.Error):
                    ours.render(messages, prompt=prompt, tools=tools,
                                template=file)
                continue
            self.assertEqual(
                ours.render(messages, prompt=prompt, tools=tools,
                            template=file), wanted)


if __name__ == "__main__":
    main()
