"""Reads Parquet and Arrow files, and object stores, for the program
``penstock``, by the pyarrow of this Python: the program starts this process
where its plugin fits no pyarrow that is installed (docs/how-to/wheel.md).

Requests come as lines of JSON on standard input. An answer on standard output
is a JSON object behind its size (uint32), and what that announces: "rows", an
Arrow IPC stream, or "bytes". Rows are sent one record batch at a time, when
they are asked for. Several scans, each under a number that the program gives
it, may have begun at the same time; the program sends one request after the
other.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import queue
import struct
import sys
import threading
import traceback
from typing import Any, BinaryIO, Callable, NoReturn

from .. import __version__
from .arrow_files import (Ipc, IpcScan, Parquet, ParquetScan, check_pyarrow,
                          open_file)
from ..errors import Error
from .object_store import File, Store, is_stored
from .pyarrow_calls import Refused, import_pyarrow, told

_SIZE = struct.Struct("<I")
_BUFFER = 1 << 16
_OPEN = 64  # files that stay open


class Answers:
    """What this process writes, in order."""

    def __init__(self, to: BinaryIO) -> None:
        self._to = to
        self._sink: Any = None

    def head(self, **members: object) -> None:
        text = json.dumps(members).encode()
        self._to.write(_SIZE.pack(len(text)) + text)

    def rows(self, of: Any) -> None:
        """A table or a record batch as an IPC stream."""
        pyarrow, ipc = import_pyarrow(), import_pyarrow("pyarrow.ipc")
        if self._sink is None:
            self._sink = pyarrow.PythonFile(self._to, mode="w")
        with ipc.new_stream(self._sink, of.schema) as stream:
            if of.num_rows:
                stream.write(of)

    def bytes(self, of: bytes) -> None:
        self._to.write(of)

    def flush(self) -> None:
        self._to.flush()


# A file that was written again is opened again.
_Stamp = tuple[int, int, int]


def _stamp(path: bytes) -> _Stamp:
    if is_stored(path):
        return 0, 0, 0
    with told():
        found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns


@functools.lru_cache(maxsize=_OPEN)
def _opened(kind: str, path: bytes, stamp: _Stamp) -> Parquet | Ipc:
    return open_file(kind, path)


@functools.lru_cache(maxsize=_OPEN)
def _stored(uri: bytes, path: bytes) -> File:
    return Store(uri).open(path)


def _open(answers: Answers, path: bytes, kind: str) -> None:
    file = _opened(kind, path, _stamp(path))
    answers.head(declared=file.declared, meaning=file.meaning,
                 classes=file.classes, chunk_ends=file.chunk_ends)
    answers.rows(file.empty)


def _list(answers: Answers, path: bytes, uri: str) -> None:
    answers.head(files=[
        (name.decode(), size, changed_ns)
        for name, size, changed_ns in Store(bytes.fromhex(uri)).list(path)])


def _read_stored(answers: Answers, path: bytes, uri: str, offset: int,
                 size: int) -> None:
    found = _stored(bytes.fromhex(uri), path).read(offset, size)
    answers.head(bytes=len(found))
    answers.bytes(found)


@dataclasses.dataclass
class Scan:
    """A scan that the program has begun. While the program works with rows,
    the next ones are decoded."""
    of: ParquetScan | IpcScan
    stamp: _Stamp
    ahead: Any = None  # a record batch, None, or what was refused

    def decode(self) -> None:
        try:
            self.ahead = self.of.next()
        except Refused as refused:
            self.ahead = refused

    def send(self, answers: Answers) -> None:
        if isinstance(self.ahead, Refused):
            raise self.ahead
        if self.ahead is None:
            answers.head()
            return
        answers.head(rows=True)
        answers.rows(self.ahead)
        answers.flush()
        self.decode()


class Server:
    """Does what is asked, and writes what came of it."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._scans: dict[int, Scan] = {}

    def answer(self, request: dict[str, Any]) -> None:
        try:
            self._do(**request)
        except Refused as refused:
            self._answers.head(refused={
                name: getattr(refused, name) for name in
                ("says", "where", "next", "no_memory", "unsupported",
                 "of_store")})
        except Exception as error:  # noqa: BLE001: the program shows it
            traceback.print_exc()
            self._answers.head(failed=f"{type(error).__name__}: {error}")
        self._answers.flush()

    def _do(self, do: str, path: str = "", scan: int = 0, **rest: Any) -> None:
        if do == "forget":
            self._scans.pop(scan, None)
            return
        if do == "scan":
            self._begin(scan, bytes.fromhex(path), **rest)
        if do in ("scan", "next"):
            self._scans[scan].send(self._answers)
        else:
            _DOES[do](self._answers, bytes.fromhex(path), **rest)

    def _begin(self, number: int, path: bytes, kind: str, columns: list[int],
               chunk: int) -> None:
        stamp = _stamp(path)
        scan = self._scans.get(number)
        if scan is None or scan.stamp != stamp:
            scan = Scan(_opened(kind, path, stamp).scan(columns), stamp)
            self._scans[number] = scan
        scan.of.begin(chunk)
        scan.decode()


_DOES: dict[str, Callable[..., None]] = {"open": _open, "list": _list, "stored": _read_stored}


def _hear(requests: queue.SimpleQueue[str]) -> None:
    """Ends this process with the program, whatever pyarrow waits for."""
    for line in sys.stdin:
        requests.put(line)
    os._exit(0)


def main() -> NoReturn:
    """Greets the program, and answers until it ends."""
    answers = Answers(os.fdopen(os.dup(1), "wb", _BUFFER))
    os.dup2(2, 1)  # what a library prints is no answer
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_hear, args=[requests], daemon=True).start()
    try:
        check_pyarrow()
        answers.head(penstock=__version__,
                     pyarrow=import_pyarrow().__version__)
    except Error as error:
        answers.head(error={"code": error.code, "what": error.what,
                            "why": error.why, "next": error.next})
    answers.flush()
    server = Server(answers)
    while True:
        server.answer(json.loads(requests.get()))
