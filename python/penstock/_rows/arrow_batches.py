"""Record batches of Arrow IPC files and streams, by pyarrow, as the engine's
plugin finds them (ipc_batches.cpp, ipc_footer.cpp). pyarrow's reader of files
would copy the fields that it is asked for."""

from __future__ import annotations

import os
import struct
from typing import Any, Callable, Iterator

from .. import _engine
from .object_store import copied_here, is_stored
from .pyarrow_calls import Refused, import_pyarrow, told

_MARK = b"ARROW1"
_BEHIND_MARK = 8
_LENGTH = struct.Struct("<i")
_BLOCK = struct.Struct("<qi4xq")


def open_batches(path: bytes) -> Batches:
    """A file that begins and ends with the mark of the file format is read by
    its footer, as the format demands; any other is a stream."""
    if is_stored(path):
        whole = copied_here(path)
    else:
        # Not pyarrow's own map: a file that is cut off would end the process.
        whole = import_pyarrow().py_buffer(_engine.map_file(path)) \
            if os.path.getsize(path) else b""
    if not len(whole):
        raise Refused("the file has 0 bytes",
                      next="remove the file: an interrupted "
                      "copy leaves such a file")
    if whole[:len(_MARK)].to_pybytes() != _MARK:
        return Batches(_walk(whole))
    if whole.size < _BEHIND_MARK + _LENGTH.size + len(_MARK) or \
            whole[whole.size - len(_MARK):].to_pybytes() != _MARK:
        raise Refused("the end of the file is missing: the file was not "
                      "written completely",
                      next="write the file again, or get an intact copy")
    return Batches(_by_footer(whole))


def _walk(whole: Any) -> Iterator[Any]:
    """The messages of a stream: its parts of that buffer."""
    pyarrow, ipc = import_pyarrow(), import_pyarrow("pyarrow.ipc")
    stream = pyarrow.BufferReader(whole)
    reader = ipc.MessageReader.open_stream(stream)
    begin = 0
    while True:
        try:
            reader.read_next_message()
        except StopIteration:
            return
        end = stream.tell()
        yield whole.slice(begin, end - begin)
        begin = end


def _by_footer(whole: Any) -> Iterator[Any]:
    """Those that a footer lists, and a message of the schema that it holds."""
    where = "its footer"
    end = whole.size - len(_MARK) - _LENGTH.size
    size, = _LENGTH.unpack(whole.slice(end, _LENGTH.size).to_pybytes())
    if not 0 < size <= end - _BEHIND_MARK:
        raise Refused(f"it has {size} bytes", where)
    footer = whole.slice(end - size, size).to_pybytes()
    try:
        schema, blocks = _read_footer(footer)
    except struct.error:
        raise Refused("the tables of the footer contradict each "
                      "other", where) from None
    yield import_pyarrow().py_buffer(schema)
    for offset, metadata, body in blocks:
        if min(offset, metadata, body) < 0 or \
                offset + metadata + body > whole.size:
            raise Refused("a block is beyond the end of the file", where)
        yield whole.slice(offset, metadata + body)


def _read_footer(footer: bytes) -> tuple[bytes, list[tuple[int, int, int]]]:
    """Of a flatbuffer: a message of the schema that it holds, and its blocks:
    where they begin, and the bytes of a header and of a body. Raises
    struct.error where its parts do not lie in it."""
    def number(code: str, at: int) -> int:
        if at < 0:
            raise struct.error
        found: int = struct.unpack_from("<" + code, footer, at)[0]
        return found

    def field(which: int) -> int:
        list_at = root - number("i", root)
        entry = 4 + 2 * which
        far = number("H", list_at + entry) \
            if entry + 2 <= number("H", list_at) else 0
        return root + far if far else 0

    def blocks(which: int) -> list[tuple[int, int, int]]:
        at = field(which)
        if not at:
            return []
        at += number("I", at)
        count, rest = number("I", at), footer[at + 4:]
        if count * _BLOCK.size > len(rest):
            raise struct.error
        return [_BLOCK.unpack_from(rest, _BLOCK.size * n)
                for n in range(count)]

    root = number("I", 0)
    version, schema = field(0), field(1)
    if not schema:
        raise struct.error
    schema += number("I", schema)
    # The table `Message`, whose fields are relative, in front of the footer.
    table = struct.pack("<I5Hxxih?xIxxxx", 16, 10, 12, 4, 6, 8, 12,
                        number("h", version) if version else 0, True,
                        32 + schema - 24) + footer
    table += bytes(-len(table) % 8)
    return (b"\xff\xff\xff\xff" + _LENGTH.pack(len(table)) + table,
            blocks(2) + blocks(3))


class Batches:
    """The schema of a file, and its record batches."""

    def __init__(self, pieces: Iterator[Any]) -> None:
        self.messages: list[tuple[str, Any]] = []  # the first is the schema
        self.places: list[int] = []  # by batch: its message
        while True:
            where = f"record batch {len(self.places)}" if self.messages \
                else "its schema"
            with told(where):
                piece = next(pieces, None)
                if piece is None:
                    break
                self._add(piece, where)
        if not self.messages:
            raise Refused("the file has no schema",
                          next="check that this is an Arrow IPC file")
        self.count = len(self.places)
        with told("its schema"):
            self.schema = self.reader(Pieces(), []).schema

    def _add(self, piece: Any, where: str) -> None:
        kind = import_pyarrow("pyarrow.ipc").read_message(piece).type
        if bool(self.messages) == (kind == "schema"):
            raise Refused(f"a message of type {kind} is out of place", where)
        if kind == "record batch":
            self.places.append(len(self.messages))
        self.messages.append((kind, piece))

    def reader(self, pieces: Pieces, fields: list[int]) -> Any:
        """A reader of the messages that `pieces` is given, after the schema."""
        pyarrow, ipc = import_pyarrow(), import_pyarrow("pyarrow.ipc")
        pieces.add(self.messages[0][1])
        return ipc.open_stream(
            pyarrow.PythonFile(pieces, mode="r"),
            options=ipc.IpcReadOptions(use_threads=False,
                                       included_fields=fields))

    def decode(self, fields: list[int]) -> Callable[[int], Any]:
        """What gives a record batch by its number, with these fields of the
        schema, at least one. It belongs to one thread."""
        return _Decoder(self, fields)


class _Decoder:
    def __init__(self, batches: Batches, fields: list[int]) -> None:
        self._batches, self._fields = batches, fields
        self._reader: Any = None
        self._pieces = Pieces()
        self._at = 0  # the message that was read last

    def __call__(self, batch: int) -> Any:
        batches, message = self._batches, self._batches.places[batch]
        if self._reader is None or message <= self._at:
            self._pieces, self._at = Pieces(), 0
            self._reader = batches.reader(self._pieces, self._fields)
        reader, self._reader = self._reader, None  # of no use if that fails
        for kind, piece in batches.messages[self._at + 1:message]:
            if kind == "dictionary":
                self._pieces.add(piece)
        self._pieces.add(batches.messages[message][1])
        self._at = message
        try:
            found = reader.read_next_batch()
        except StopIteration:
            raise Refused("it holds no rows") from None
        self._reader = reader
        return found


class Pieces:
    """Buffers as one file that is read once, without a copy."""

    closed = False

    def __init__(self) -> None:
        self._ahead: list[Any] = []

    def add(self, piece: Any) -> None:
        self._ahead.append(piece)

    def read_buffer(self, size: int = -1) -> Any:
        """What is left of a piece, at most `size` bytes of it."""
        pyarrow = import_pyarrow()
        while self._ahead and not self._ahead[0].size:
            del self._ahead[0]
        if not self._ahead:
            return pyarrow.py_buffer(b"")
        piece = self._ahead[0]
        size = piece.size if size < 0 else min(size, piece.size)
        self._ahead[0] = piece.slice(size)
        return piece.slice(0, size)

    def read(self, size: int = -1) -> bytes:
        return bytes(self.read_buffer(size).to_pybytes())

    def readable(self) -> bool:
        return True

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True
