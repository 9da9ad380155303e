"""Parquet and Arrow files, where pyarrow comes in: the engine's plugin uses the
libraries of the release that it was built with, and pyarrow itself reads where
another one is installed. The engine calls this (docs/how-to/wheel.md).
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
from typing import Any, Callable, Iterator, Sequence

from .arrow_batches import open_batches
from .arrow_classes import Declared, SharedDictionary
from ..errors import SourceError, worded
from .object_store import input_file, is_stored
from .pyarrow_calls import Refused, import_pyarrow, told

_OLDEST = 15  # that verifies checksums of pages
_BATCH = 1 << 16  # rows
_MOST_ROWS = 1 << 48
_TEXTS = ("string", "large_string", "string_view")
# In a list they are written as Arrow shows them.
_SHOWN = re.compile(r"timestamp|date|time|duration|(large_|fixed_size_)?binary")


def folder_of(package: str) -> str:
    """The folder of an installed package, without importing it; "" without."""
    try:
        found = importlib.util.find_spec(package)
    except ValueError:  # somebody's stand-in for it
        return ""
    folders = None if found is None else found.submodule_search_locations
    return str(list(folders)[0]) if folders else ""


def libraries() -> str:
    """The folder of the package pyarrow; "" without it."""
    return folder_of("pyarrow")


def scanner_first() -> bool:
    """Whether pyarrow reads even where the plugin could: for tests."""
    return os.environ.get("PENSTOCK_ARROW_WAY") == "scanner"


def check_pyarrow() -> None:
    """Raises SourceError unless pyarrow is here, and of a release that can be
    used."""
    what, where = "cannot read with pyarrow", "pyarrow"
    try:
        pyarrow = import_pyarrow()
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError) and \
            error.name == "pyarrow"
        raise worded(SourceError, "source.part_missing", what, where,
                     "pyarrow is not installed" if missing else
                     f"pyarrow cannot be imported: {error}",
                     "pip install pyarrow") from error
    if int(pyarrow.__version__.split(".")[0]) < _OLDEST:
        raise worded(SourceError, "source.part_missing", what, where,
                     f"{pyarrow.__version__} is installed, but {_OLDEST} or "
                     "later is needed", f"pip install 'pyarrow>={_OLDEST}'")


def open_file(kind: str, path: bytes) -> Parquet | Ipc:
    """The file at `path`, of kind "parquet" or "arrow"; it may be a URI of an
    object store."""
    return Parquet(path) if kind == "parquet" else Ipc(path)


class Columns:
    """The columns of a schema as the engine takes them: `empty`, a table of
    them without rows; by member of a struct, how pyarrow calls its type and
    what that means and which classes it declares (`declared`, `meaning`,
    `classes`), and where it is (`names`). Those in `ordered` declare them by
    their dictionaries. `first`: the first field that can be read."""

    def __init__(self, schema: Any) -> None:
        pyarrow = import_pyarrow()
        self.schema = schema
        fields = [field.with_type(plain(field.type)) for field in schema]
        # What pandas wrote names its index.
        self.empty = pyarrow.schema(fields, {
            key: text for key, text in (schema.metadata or {}).items()
            if key == b"pandas"}).empty_table()
        self.declared: list[str] = []
        self.meaning: list[str] = []
        self.classes: list[list[str]] = []
        self.names: list[tuple[str, ...]] = []
        self.ordered: list[int] = []
        self.first = next((at for at, field in enumerate(fields)
                           if field.type != _not_read()), 0)
        self._classes = Declared(schema)
        for field, made in zip(schema, fields):
            self._add(field.type, made.type, (field.name,))

    def _add(self, type: Any, made: Any, names: tuple[str, ...]) -> None:
        pyarrow = import_pyarrow()
        if pyarrow.types.is_struct(made) and made.num_fields:
            whole = pyarrow.types.is_struct(type)
            for at in range(made.num_fields):
                member = made.field(at)
                self._add(type.field(at).type if whole else member.type,
                          member.type, (*names, member.name))
            return
        name = getattr(type, "extension_name", "")
        self.declared.append(str(type))
        self.meaning.append({"arrow.json": "json",
                             "arrow.uuid": "uuid"}.get(name, ""))
        self.names.append(names)
        types = pyarrow.types
        self.classes.append(self._classes.labels(names)
                            if types.is_integer(made) else [])
        if types.is_dictionary(made) and len(names) == 1 and \
                str(made.value_type) in _TEXTS and \
                self._classes.orders(names[0], made):
            self.ordered.append(len(self.names) - 1)


def is_list(type: Any) -> bool:
    pyarrow = import_pyarrow()
    return bool(pyarrow.types.is_list(type) or pyarrow.types.is_large_list(type)
                or pyarrow.types.is_fixed_size_list(type))


@functools.lru_cache(maxsize=None)
def plain(type: Any, nested: bool = False) -> Any:
    """The type that the engine takes in place of this one: times and
    bytes in lists, which become JSON, are texts."""
    pyarrow = import_pyarrow()
    types = pyarrow.types
    if isinstance(type, pyarrow.BaseExtensionType):
        return plain(type.storage_type, nested)
    if types.is_dictionary(type):
        value = plain(type.value_type, nested)
        same = value == type.value_type and not types.is_decimal(value)
        return type if same else value
    if types.is_decimal(type):
        return type if not nested or type.bit_width == 128 else \
            pyarrow.string()
    if types.is_struct(type):
        return pyarrow.struct([
            field.with_type(plain(field.type, nested))
            for field in (type.field(at) for at in range(type.num_fields))])
    if types.is_map(type):
        return pyarrow.map_(plain(type.key_type, True),
                            plain(type.item_type, True))
    if is_list(type):
        value = type.value_field
        value = value.with_type(plain(value.type, True))
        if types.is_fixed_size_list(type):
            return pyarrow.list_(value, type.list_size)
        return pyarrow.large_list(value) if types.is_large_list(type) else \
            pyarrow.list_(value)
    if nested and _SHOWN.match(str(type)):
        return pyarrow.string()
    try:
        pyarrow.array([], type)  # which this release may lack
    except NotImplementedError:
        return _not_read()
    return type


def _not_read() -> Any:
    """Stands for types that are not read, as this type is not read."""
    return import_pyarrow().month_day_nano_interval()


def _has_numbers(type: Any) -> bool:
    """Of a list: it stays one, and is no JSON."""
    types, value = import_pyarrow().types, type.value_type
    return bool(types.is_integer(value) or types.is_float32(value) or
                types.is_float64(value))


def check(array: Any) -> None:
    """Raises what pyarrow says of buffers that do not fit together. Of a plain
    text the engine looks at the bytes, row by row."""
    pyarrow = import_pyarrow()
    if pyarrow.types.is_struct(array.type):
        for at in range(array.type.num_fields):
            check(array.field(at))
    elif str(array.type) in ("string_view", "binary_view"):
        array.cast(pyarrow.binary_view()).validate(full=True)
    elif pyarrow.types.is_map(array.type) or (
            is_list(array.type) and not _has_numbers(array.type)):
        array.validate(full=True)


def ready(batch: Any) -> Any:
    """A record batch of sound buffers and plain types."""
    arrays = []
    for array in batch.columns:
        array.validate()
        check(array)
        made = plain(array.type)
        arrays.append(array if made == array.type else array.cast(made))
    return import_pyarrow().RecordBatch.from_arrays(arrays, names=batch.schema.names)


class Parquet:
    """A Parquet file: its row groups are the chunks."""

    def __init__(self, path: bytes) -> None:
        self.path = path
        self.metadata = None
        with told():
            file = self.opened()
            self.metadata = file.metadata
            self._columns = Columns(file.schema_arrow)
            self.chunk_ends = list(self._ends())
        self.empty = self._columns.empty
        self.declared = self._columns.declared
        self.meaning = self._columns.meaning

    @functools.cached_property
    def classes(self) -> list[list[str]]:
        """By column those that it is declared to have."""
        if not self._columns.ordered:
            return self._columns.classes
        with told():
            file = self.opened()
        for at in self._columns.ordered:
            self._columns.classes[at] = self._classes_of(
                file, self._columns.names[at][0])
        return self._columns.classes

    def opened(self) -> Any:
        """A reader of its own, for one thread."""
        parquet = import_pyarrow("pyarrow.parquet")
        stored = is_stored(self.path)
        return parquet.ParquetFile(
            input_file(self.path) if stored
            else import_pyarrow().OSFile(self.path, "rb"),
            metadata=self.metadata, pre_buffer=stored,
            # Nanoseconds would end in the years 1677 and 2262.
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True)

    def _ends(self) -> Iterator[int]:
        metadata: Any = self.metadata
        rows = 0
        for group in range(metadata.num_row_groups):
            more = metadata.row_group(group).num_rows
            if not 0 <= more <= _MOST_ROWS:
                raise Refused(f"row group {group} has {more} rows")
            rows += more
            yield rows

    def _classes_of(self, file: Any, name: str) -> list[str]:
        """Those of a column, all of which is read: only that tells whether
        its dictionaries hold all values."""
        metadata: Any = self.metadata
        dictionary = SharedDictionary()
        for group, end in enumerate(self.chunk_ends):
            rows = metadata.row_group(group)
            begin = end - rows.num_rows
            if begin == end:
                continue
            if not any(column.has_dictionary_page for column in map(
                    rows.column, range(rows.num_columns))
                    if column.path_in_schema == name):
                return []
            with told(f"row group {group} (rows {begin}..{end})"):
                for batch in file.iter_batches(
                        _BATCH, row_groups=[group], columns=[name],
                        use_threads=False, use_pandas_metadata=False):
                    if not dictionary.add(batch.column(0)):
                        return []
        return dictionary.classes()

    def scan(self, columns: Sequence[int]) -> ParquetScan:
        """Of these columns."""
        names = sorted({".".join(self._columns.names[at]) for at in columns})
        return ParquetScan(self, names)


class ParquetScan:
    """Reads row groups, some ten thousand rows at a time."""

    def __init__(self, file: Parquet, names: list[str]) -> None:
        self._names = names
        with told():
            self._file = file.opened()
        self._batches: Any = None

    def begin(self, chunk: int) -> None:
        with told():
            self._batches = self._file.iter_batches(
                _BATCH, row_groups=[chunk], columns=self._names,
                use_threads=False, use_pandas_metadata=False)

    def next(self) -> Any:
        with told():
            batch = next(self._batches, None)
            return None if batch is None else ready(batch)


class Ipc:
    """An Arrow IPC file or stream: its record batches are the chunks."""

    def __init__(self, path: bytes) -> None:
        with told():
            self._batches = open_batches(path)
        with told("its schema"):
            self._columns = Columns(self._batches.schema)
        if not self._columns.schema.names:
            raise Refused("the file has no columns", next="leave the file out")
        self.empty = self._columns.empty
        self.declared = self._columns.declared
        self.meaning = self._columns.meaning

    @property
    def chunk_ends(self) -> list[int]:
        return self._counted[0]

    @property
    def classes(self) -> list[list[str]]:
        """By column those that it is declared to have."""
        return self._counted[1]

    @functools.cached_property
    def _counted(self) -> tuple[list[int], list[list[str]]]:
        """Rows, which any field that is read tells, and classes that are
        declared by dictionaries: all record batches are decoded once."""
        names, tops = self._columns.names, self._columns.schema.names
        ordered = {tops.index(names[at][0]): (at, SharedDictionary())
                   for at in self._columns.ordered}
        fields = sorted({self._columns.first, *ordered})
        batch_at = self._batches.decode(fields)
        ends, end = [], 0
        for chunk in range(self._batches.count):
            with told(f"record batch {chunk}"):
                batch = batch_at(chunk)
                for field, (_, dictionary) in ordered.items():
                    dictionary.add(batch.column(fields.index(field)))
            end += batch.num_rows
            ends.append(end)
        for at, dictionary in ordered.values():
            self._columns.classes[at] = dictionary.classes()
        return ends, self._columns.classes

    def scan(self, columns: Sequence[int]) -> IpcScan:
        """Of these columns."""
        tops = self._columns.schema.names
        return IpcScan(self._batches.decode(sorted({
            tops.index(self._columns.names[at][0]) for at in columns})))


class IpcScan:
    """Decodes some fields of record batches, in any order."""

    def __init__(self, batch_at: Callable[[int], Any]) -> None:
        self._batch_at = batch_at
        self._chunk: int | None = None

    def begin(self, chunk: int) -> None:
        self._chunk = chunk

    def next(self) -> Any:
        """The record batch that was begun, once; then None."""
        chunk, self._chunk = self._chunk, None
        if chunk is None:
            return None
        with told():
            return ready(self._batch_at(chunk))
