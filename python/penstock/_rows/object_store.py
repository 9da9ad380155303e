"""Files in object stores (``s3://``), read by the pyarrow that is there where
the engine's plugin for them does not fit its release. The engine calls this;
docs/how-to/wheel.md describes both ways.
"""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
import urllib.parse
from typing import Any

from .pyarrow_calls import import_pyarrow, told

_SCHEME = b"s3://"
_TRIES = 3
_CONNECT_S, _ANSWER_S = 5, 10  # as the plugin has it


def is_stored(uri: bytes) -> bool:
    return uri.startswith(_SCHEME)


class Store:
    """The object store that a URI names."""

    def __init__(self, uri: bytes) -> None:
        with told():
            self._files, _ = _opened(uri)

    def list(self, path: bytes) -> list[tuple[bytes, int, int]]:
        """The file of this path or, where it is a folder, all below it: paths,
        bytes, and when they were changed, in ns since 1970."""
        fs = import_pyarrow("pyarrow.fs")
        with told():
            info = self._files.get_file_info(_inside(path))
            found = [info] if info.type != fs.FileType.Directory else \
                self._files.get_file_info(
                    fs.FileSelector(_inside(path), recursive=True))
        return [(_SCHEME + one.path.encode(), one.size, one.mtime_ns or 0)
                for one in found if one.is_file]

    def open(self, path: bytes) -> File:
        with told():
            return File(self._files.open_input_file(_inside(path)))


class File:
    """A file of a store, read from any thread."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, offset: int, size: int) -> bytes:
        with told():
            return bytes(self._file.read_at(size, offset))


def input_file(uri: bytes) -> Any:
    """The file of a URI, as pyarrow's readers take it."""
    files, path = _opened(uri)
    return files.open_input_file(path)


def copied_here(uri: bytes) -> Any:
    """The bytes of a URI's file, of a temporary file without a name."""
    files, path = _opened(uri)
    with tempfile.TemporaryFile() as copy:
        with files.open_input_stream(path) as stream:
            shutil.copyfileobj(stream, copy, 1 << 23)
        copy.flush()
        return import_pyarrow().memory_map(
            f"/proc/self/fd/{copy.fileno()}").read_buffer()


def _inside(path: bytes) -> str:
    """"s3://bucket/key" as file systems of pyarrow have it: "bucket/key"."""
    return path[len(_SCHEME):].decode()


def _opened(uri: bytes) -> tuple[Any, str]:
    """The file system of a URI, and the path in it."""
    path, _, options = _inside(uri).partition("?")
    variables = tuple(sorted((name, value) for name, value in
                             os.environ.items() if name.startswith("AWS_")))
    return _file_system(path.partition("/")[0], options, variables), path


@functools.lru_cache(maxsize=64)
def _file_system(bucket: str, options: str,
                 variables: tuple[tuple[str, str], ...]) -> Any:
    fs = import_pyarrow("pyarrow.fs")
    given = dict(urllib.parse.parse_qsl(options))
    of = dict(variables)
    endpoint = given.get("endpoint_override") or \
        of.get("AWS_ENDPOINT_URL_S3") or of.get("AWS_ENDPOINT_URL") or ""
    scheme, _, host = endpoint.rpartition("://")
    region = given.get("region")
    if not region and not endpoint:
        region = fs.resolve_s3_region(bucket)
    return fs.S3FileSystem(
        region=region, endpoint_override=host or None,
        scheme=given.get("scheme") or scheme or "https",
        anonymous=given.get("anonymous") == "true",
        connect_timeout=_CONNECT_S, request_timeout=_ANSWER_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_TRIES))
