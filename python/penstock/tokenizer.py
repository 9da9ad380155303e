"""Text becomes ids, as the tokenizers library makes them of the same file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from . import _engine

if TYPE_CHECKING:
    import numpy

    Ids = numpy.ndarray[Any, numpy.dtype[numpy.uint32]]
    Targets = numpy.ndarray[Any, numpy.dtype[numpy.bool_]]
    Messages = Sequence[Mapping[str, Any]]
    Offsets = numpy.ndarray[Any, numpy.dtype[numpy.uint32]]


class Tokenizer:
    """A tokenizer.json, by its path or that of the folder it is in.

        tokenizer = penstock.Tokenizer("model/tokenizer.json")
        ids = tokenizer.encode("one text")
        many = tokenizer.encode_batch(["one", "another"])
        text = tokenizer.decode(ids)

    The ids are those of the tokenizers library; a file with a part that is not
    known is refused (RequestError `tokenizer.part`). Thread-safe: Python's
    other threads run while text is encoded.

    >>> import json, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokenizer.json"
    >>> byte_level = {"type": "ByteLevel", "add_prefix_space": False}
    >>> _ = path.write_text(json.dumps({
    ...     "pre_tokenizer": byte_level, "decoder": byte_level,
    ...     "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2},
    ...               "merges": ["a b"]}}))
    >>> tokenizer = Tokenizer(path)
    >>> tokenizer.encode("abb").tolist()
    [2, 1]
    >>> [ids.tolist() for ids in tokenizer.encode_batch(["a", "", "ab"])]
    [[0], [], [2]]
    >>> tokenizer.decode([2, 1])
    'abb'
    >>> tokenizer.encode("abb", offsets=True)[1].tolist()
    [[0, 2], [2, 3]]
    >>> stream = tokenizer.decoder()
    >>> [stream.add(id) for id in (2, 1)], stream.finish()
    (['ab', 'b'], '')
    >>> tokenizer.id_of("ab"), tokenizer.token_of(1), len(tokenizer)
    (2, 'b', 3)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        name = os.fspath(path)
        if os.path.isdir(name):
            name = os.path.join(name, "tokenizer.json")
        self._path = os.path.abspath(name)
        self._shared = _engine.SharedTokenizer(name)

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[str]]:
        """A copy in another process reads the file again."""
        return Tokenizer, (self._path,)

    @overload
    def encode(self, text: str, *, special: bool = True,
               offsets: Literal[False] = False) -> Ids: ...
    @overload
    def encode(self, text: str, *, special: bool = True,
               offsets: Literal[True]) -> tuple[Ids, Offsets]: ...

    def encode(self, text: str, *, special: bool = True,
               offsets: bool = False) -> Ids | tuple[Ids, Offsets]:
        """The ids of a text, an array of uint32; with `special`, those too
        that the file's template puts around it. With `offsets`, also an array
        [ids, 2]: `text[begin:end]` is what an id was made of; 0 and 0 for what
        the template adds. Slower: no words are remembered for it."""
        if not offsets:
            return self.encode_batch([text], special=special)[0]
        import numpy

        ids, places = self._shared.encode_with_offsets(text, special)
        return (numpy.frombuffer(ids, dtype=numpy.uint32),
                numpy.frombuffer(places, dtype=numpy.uint32).reshape(-1, 2))

    def encode_batch(self, texts: Iterable[str], *, special: bool = True,
                     threads: int | None = None) -> list[Ids]:
        """The ids of each text: parts of one array, which cannot be written
        to. Many texts are shared out to `threads`; by default as many as this
        process has cores. The ids are the same with any number. torch takes
        them as `torch.from_numpy(ids.astype("int64"))`."""
        import numpy

        if isinstance(texts, (str, bytes)):
            raise TypeError("encode_batch() takes a list of texts; one text "
                            "becomes ids by encode(text)")
        every_text = list(texts)
        try:
            every, ends = self._shared.encode(every_text, special, threads or 0)
        except TypeError as error:
            told = _no_text(every_text)
            if told is None:
                raise
            raise told from error
        stops = numpy.frombuffer(ends, dtype=numpy.uint64).tolist()
        return [every[begin:end]
                for begin, end in zip([0, *stops], stops, strict=False)]

    def render(self, messages: Messages, *, prompt: bool = False,
               tools: Messages | None = None,
               template: str | os.PathLike[str] = "") -> str:
        """The text of a chat, as the chat template beside the tokenizer makes
        it, or that of a file, `template`; with `prompt`, ready for the next
        turn of the assistant; `tools` is what it may call. The same as `apply_chat_template` of
        transformers with `tokenize=False`."""
        return self._shared.render(json.dumps(messages), prompt,
                                   json.dumps(tools), os.fspath(template))

    def encode_chat(self, messages: Messages, *,
                    tools: Messages | None = None,
                    template: str | os.PathLike[str] = ""
                    ) -> tuple[Ids, Targets]:
        """The ids of a chat, and an array of bool: which of them are the turns
        of the assistant, the targets of the loss."""
        import numpy

        ids, targets = self._shared.encode_chat(
            json.dumps(messages), json.dumps(tools), os.fspath(template))
        return (numpy.frombuffer(ids, dtype=numpy.uint32),
                numpy.frombuffer(targets, dtype=numpy.bool_))

    def decode(self, ids: Iterable[int], *, skip_special: bool = True) -> str:
        """The text of ids. Those that no token has are left out."""
        return self._shared.decode([int(one) for one in ids], skip_special)

    def decoder(self, *, skip_special: bool = True) -> _engine.Decoder:
        """Decodes ids as they come: `add(id)` gives the text that an id
        completes, `finish()` what is left. All of it is what `decode` gives."""
        return self._shared.decoder(skip_special)

    def id_of(self, token: str) -> int | None:
        """The id of a token as the file writes it, None where it has none."""
        return self._shared.id_of(token)

    def token_of(self, id: int) -> str | None:
        """The token of an id as the file writes it, None where it has none."""
        return self._shared.token_of(id)

    @property
    def bos(self) -> int | None:
        """The id with which tokenizer_config.json begins a text."""
        return self._shared.bos()

    @property
    def eos(self) -> int | None:
        """The id with which tokenizer_config.json ends a text."""
        return self._shared.eos()

    @property
    def fingerprint(self) -> str:
        """Equal ones give equal ids."""
        return self._shared.fingerprint()

    def __len__(self) -> int:
        """The largest id and one: what an embedding needs."""
        return self._shared.size()


def _no_text(texts: Sequence[object]) -> TypeError | None:
    """The error for the first one that is not a text."""
    for at, text in enumerate(texts):
        if not isinstance(text, str):
            return TypeError(f"texts[{at}] is of the type "
                             f"{type(text).__name__}, expected str: leave it "
                             "out, or give str(text), text.decode()")
    return None
