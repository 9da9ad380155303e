"""The rows of the golden tests: the same in SQLite and in PostgreSQL, and made
of nothing but their number."""
import csv
import hashlib
import json
import sqlite3
import subprocess

ROWS = 401
LARGE_ROWS = 20_000  # read in several ranges: more than 16 MiB in SQLite

# Names that sort, quote and encode in awkward ways. All are UTF-8 without a
# zero byte, which PostgreSQL does not keep.
NAMES = ["", " ", "a", "A", "b", "\u00e1", "a\u0301", "\u00df", "\u1e9e",
         "\u65e5\u672c", "\uffff", "\U00010000", "\U0001f4fb", "\x01", "\t",
         "\n", "\r\n", "'", '"', "\\", "\\N", "\\.", "%", "\x7f", "NULL", "0",
         "00", "-1", "1e3", "\u202e", "z" * 300, "\u05d0", "e\u0301\u0300"]
INT64 = [-2**63, 2**63 - 1, 0, -1, 1, 2**53 + 1, -2**53 - 1, 2**32, -2**31]
REALS = [0.0, -0.0, 1.0, -1.0, 0.1, 1e-30, 1e30, 123456.789, 2.0**-149, 1 / 3]
# Lists as no program should write them: a field that reads "v" takes a few.
BROKEN = [None, "", "none", "[", "{}", '[{"v": tru}]', '[{"v": NaN}]', "[1]",
          '[{"v": "1"}]', '[{"v": 1e999}]', '[{"v": [1]}]', '[{"u": 1}]',
          '[{"v": 1}] x', "null", '[{"v": 1, "v": 2}]', "[{}]",
          '[{"v": 12345678901234567890}]', '\ufeff[{"v": 1}]']
# Keys of a table that only SQLite holds.
ZEROS = ["a", "a\0", "a\0b", "", "\0", "a\x01", "\0\0", "b"]
ZONES = ["north", "south", "\u00f8st", "", None, "\U0001f9ed", "1", "north "]

# Name, type in SQLite, type in PostgreSQL.
COLUMNS = [
    ("id", "INTEGER PRIMARY KEY", "integer PRIMARY KEY"),
    ("sparse", "INTEGER UNIQUE", "bigint UNIQUE"),
    ("name", "TEXT UNIQUE", "text UNIQUE"),
    ("uid", "TEXT UNIQUE", "uuid UNIQUE"),
    ("heard", "JSON", "json"),
    ("loose", "TEXT", "text"),
    ("broken", "TEXT", "text"),
    ("a", "REAL", "double precision"),
    ("b", "REAL", "real"),
    ("price", "REAL", "numeric(12,4)"),
    ("n", "INTEGER", "bigint"),
    ("small", "INTEGER", "smallint"),
    ("flag", "BOOLEAN", "boolean"),
    ("at", "TIMESTAMP", "timestamp"),
    ("day", "DATE", "date"),
    ("opt", "REAL", "double precision"),
    ("grp", "INTEGER", "integer"),
    ("zone", "TEXT", "text"),
]
LARGE_COLUMNS = [
    ("id", "INTEGER PRIMARY KEY", "bigint PRIMARY KEY"),
    ("word", "TEXT UNIQUE", "text UNIQUE"),
    ("x", "REAL", "double precision"),
    ("y", "REAL", "double precision"),
    ("filler", "TEXT", "text"),
]


def draw(*what):
    """64 bits that belong to these words and numbers."""
    digest = hashlib.sha256(repr(what).encode()).digest()
    return int.from_bytes(digest[:8], "little")


def unit(*what):
    """In [0, 1): a multiple of 2^-53."""
    return (draw(*what) >> 11) * 2.0**-53


def signed(*what):
    return draw(*what) - 2**63


def element(i, j):
    """One of a row's list: numbers, a boolean, and what no field asks for.
    "w" is null in one of 13, not there in another."""
    made = {"snr": round(40 * unit("snr", i, j) - 10, 3),
            "f": signed("f", i, j) >> 20,
            "ok": draw("ok", i, j) % 3 == 0,
            "w": unit("w", i, j) * 1e-3,
            "s": ZONES[draw("s", i, j) % 4]}
    missing = draw("missing", i, j) % 13
    if missing == 0:
        made["w"] = None
    elif missing == 1:
        del made["w"]
    return made


def loose(i):
    """JSON as people write it: white space, exponents, escapes, ties."""
    parts = [f'{{ "v" : {draw("v", i, j) % 5}.0e{j % 3} ,\n"\\u0078":-0.0,'
             f'"y\\"":[1,{{"v":2}}], "k\u00e9y": {signed("k", i, j)} }}'
             for j in range(draw("loose", i) % 6)]
    return "[" + ",\t".join(parts) + " ]"


def at(i):
    """A time from 1940 to 2060, to the microsecond."""
    year, month = 1940 + draw("year", i) % 120, 1 + draw("month", i) % 12
    return (f"{year:04}-{month:02}-{1 + draw('day', i) % 28:02} "
            f"{draw('hour', i) % 24:02}:{draw('minute', i) % 60:02}:"
            f"{draw('second', i) % 60:02}.{draw('micro', i) % 10**6:06}")


def row(i):
    real = REALS[i] if i < len(REALS) else 1e3 * (unit("a", i) - 0.5)
    uid = hashlib.md5(repr(i).encode()).hexdigest()
    return (
        i + 1,
        INT64[i] if i < len(INT64) else signed("sparse", i),
        NAMES[i] if i < len(NAMES) else f"n{draw('name', i) % 10**9}",
        f"{uid[:8]}-{uid[8:12]}-{uid[12:16]}-{uid[16:20]}-{uid[20:]}",
        json.dumps([element(i, j) for j in range(draw("many", i) % 8)]),
        loose(i),
        BROKEN[i // 7] if i % 7 == 3 and i // 7 < len(BROKEN) else
        f'[{{"v": {i}}}, {{"v": 0.5}}]',
        real,
        (draw("b", i) % 2**20) / 2.0**10 - 300,
        (draw("price", i) % 10**6) / (1, 2, 10**4)[i % 3],
        INT64[-1 - i] if i < len(INT64) else signed("n", i),
        draw("small", i) % 2**16 - 2**15,
        draw("flag", i) % 2,
        at(i),
        at(i)[:10],
        None if draw("opt", i) % 9 == 0 else unit("opt", i),
        None if draw("grp", i) % 11 == 0 else draw("grp", i, 1) % 40 - 20,
        ZONES[draw("zone", i) % len(ZONES)])


def large_row(i):
    return (i * 7 - 60_000, f"w{draw('word', i):x}", 1e6 * unit("x", i) - 3,
            1 / (1 + draw("y", i) % 1000), "." * 900)


def rows(make, count):
    """In an order of insertion that is not one of the keys'."""
    return [make(i) for i in sorted(range(count), key=lambda i: draw("at", i))]


TABLES = {"rows": (COLUMNS, rows(row, ROWS)),
          "large": (LARGE_COLUMNS, rows(large_row, LARGE_ROWS))}
VIEW = ('CREATE VIEW shown AS SELECT id, a, b, heard FROM "rows" '
        'WHERE id > 7 ORDER BY b')


def write_sqlite(path):
    base = sqlite3.connect(path)
    with base:
        for table, (columns, values) in TABLES.items():
            declared = ", ".join(f'"{name}" {kind}'
                                 for name, kind, _ in columns)
            base.execute(f'CREATE TABLE "{table}" ({declared})')
            marks = ", ".join("?" * len(columns))
            base.executemany(f'INSERT INTO "{table}" VALUES ({marks})', values)
        base.execute(VIEW)
        base.execute("CREATE TABLE zeros (word TEXT PRIMARY KEY, a REAL)")
        base.executemany("INSERT INTO zeros VALUES (?, ?)",
                         [(word, i / 4) for i, word in enumerate(ZEROS)])
    base.close()


def write_csv(path):
    """Those columns of the rows that hold no line ends; NULL is an empty cell."""
    picked = [at for at, (name, _, _) in enumerate(COLUMNS)
              if name not in ("name", "loose", "broken", "heard")]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([COLUMNS[at][0] for at in picked])
        for line in TABLES["rows"][1]:
            writer.writerow([line[at] for at in picked])


def write_postgres(psql, uri, schema):
    """Makes a schema that holds the tables; `psql` is the program."""
    script = [f'CREATE SCHEMA "{schema}"; SET search_path = "{schema}";']
    for table, (columns, values) in TABLES.items():
        declared = ", ".join(f'"{name}" {kind}' for name, _, kind in columns)
        script += [f'CREATE TABLE "{table}" ({declared});',
                   f'COPY "{table}" FROM STDIN;']
        script += ["\t".join(map(_copied, line)) for line in values]
        script.append("\\.")
    script += [VIEW + ";", "ANALYZE;"]
    subprocess.run([psql, "-q", "-X", "-v", "ON_ERROR_STOP=1", "-d", uri],
                   input="\n".join(script).encode() + b"\n", check=True,
                   stdout=subprocess.PIPE, timeout=60)


def _copied(value):
    """A value as COPY reads it."""
    if value is None:
        return "\\N"
    text = value if isinstance(value, str) else repr(value)
    for plain, escaped in ("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), (
            "\r", "\\r"):
        text = text.replace(plain, escaped)
    return text
