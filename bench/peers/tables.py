#!/usr/bin/env python3
"""When is the first batch of a data frame there, and what does a category of a
million different texts cost?

A DataFrame of pandas of 20 columns to a shuffled batch of 8192 rows: (a) of
numbers of numpy without a missing value, which are used where they lie; (b) with
missing numbers and categoricals; (c) with objects of Python that are texts in the
place of categoricals, rows of the same text the same object; (d) each row an object
of its own. All beside one pass over its memory: a copy of the frame by pandas.
From the call of penstock.Loader to the first batch.

A column of texts, a million of them different, in a table of pyarrow, to the
first batch of their classes: processor time of all threads, beside pyarrow's
dictionary_encode of the column on one thread, which hashes it once, and what
memory the process grew by at most.

Every run is a process of its own; ways take turns.

Run it in the environment of setup.sh with pandas and pyarrow; bench/run does.
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import time

import numpy

from peer_result import print_result, spread, torch_machine

BATCH, COLUMNS = 8192, 20


def texts_of(codes, kind):
    import pandas
    if kind == "mixed":
        return pandas.Categorical.from_codes(codes, list("abcdefghi"))
    words = numpy.array([f"text {at}" for at in range(9)], dtype=object)
    return pandas.Series(
        words[codes] if kind == "objects" else [f"text {at}" for at in codes],
        dtype=object)


def frame(rows, kind):
    import pandas
    draw = numpy.random.default_rng(1)
    columns = {}
    for at in range(COLUMNS):
        if kind == "numbers" or at % 4 < 2:
            columns[f"c{at}"] = (draw.random(rows, dtype="float32") if at % 2
                                 else draw.integers(0, 99, rows, "int32"))
        elif at % 4 == 2:
            values = pandas.array(draw.integers(0, 99, rows), "Int64")
            values[::10] = None
            columns[f"c{at}"] = values
        else:
            columns[f"c{at}"] = texts_of(draw.integers(0, 9, rows, "int8"),
                                         kind)
    return pandas.DataFrame(columns)


def first_batch(table, **more):
    import penstock
    start, cpu = time.perf_counter(), time.process_time()
    loader = penstock.Loader(table, batch_size=BATCH, shuffle=True,
                             device="cpu", **more)
    batch = next(iter(loader))
    assert batch.rows == BATCH
    return {"seconds": time.perf_counter() - start,
            "cpu_s": time.process_time() - cpu}


def copied(table):
    start, cpu = time.perf_counter(), time.process_time()
    table.copy(deep=True)
    return {"seconds": time.perf_counter() - start,
            "cpu_s": time.process_time() - cpu}


def texts(rows, different):
    import pyarrow
    import pyarrow.compute
    numbers = numpy.random.default_rng(2).integers(0, different, rows)
    numbers[:different] = numpy.arange(different)
    values = pyarrow.array([f"value-{i:07}" for i in range(different)])
    return pyarrow.table({"c": values.take(pyarrow.array(numbers))})


def hashed(table):
    import pyarrow
    pyarrow.set_cpu_count(1)
    start, cpu = time.perf_counter(), time.process_time()
    table["c"].combine_chunks().dictionary_encode()
    return {"seconds": time.perf_counter() - start,
            "cpu_s": time.process_time() - cpu}


def measure(way, rows, different):
    if way.startswith("frame"):
        import pandas  # noqa: F401
        table = frame(rows, way.removeprefix("frame_").removesuffix("_copied"))
    else:
        table = texts(rows, different)
    import penstock  # noqa: F401
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if way.endswith("_copied"):
        told = copied(table)
    elif way.endswith("_hashed"):
        told = hashed(table)
    elif way == "category":
        told = first_batch(table, fields={"c": {"category": {"column": "c"}}})
    else:
        told = first_batch(table)
    told["grew_mib"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                        - before) / 1024
    print(json.dumps(told))


def run(way, rows, different):
    done = subprocess.run(
        [sys.executable, __file__, "--measure", way, "--rows", str(rows),
         "--different", str(different)],
        stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def in_turns(ways, rows, different, repeats):
    runs = {way: [] for way in ways}
    for _ in range(repeats):
        for way in ways:
            runs[way].append(run(way, rows, different))
    return {way: {key: spread([one[key] for one in found])
                  for key in found[0]} for way, found in runs.items()}


def said(what, value, most, **more):
    return {"what": what, "value": value, "must_reach": f"<= {most}",
            "reached": value <= most, **more}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--object-rows", type=int, default=2_000_000)
    parser.add_argument("--text-rows", type=int, default=100_000_000)
    parser.add_argument("--different", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        return measure(options.measure, options.rows, options.different)
    frames = in_turns(tuple(
        f"frame_{kind}{what}" for kind in ("numbers", "mixed", "objects")
        for what in ("", "_copied")), options.rows, 0, options.repeats)
    # An object takes 56 bytes.
    frames |= in_turns(("frame_own_objects", "frame_own_objects_copied"),
                       options.object_rows, 0, options.repeats)
    category = in_turns(("category", "category_hashed"), options.text_rows,
                        options.different, options.repeats)

    def median(of, way, key):
        return of[way][key]["median"]

    def beside_copy(kind):
        return (median(frames, f"frame_{kind}", "cpu_s")
                / median(frames, f"frame_{kind}_copied", "cpu_s"))
    print_result(
        "peers_tables", __doc__,
        f"bench/run peers_tables --rows {options.rows} --object-rows "
        f"{options.object_rows} --text-rows {options.text_rows} --different "
        f"{options.different} "
        f"--repeats {options.repeats}",
        {"machine": torch_machine(), "load_average": os.getloadavg(),
         "rows": options.rows, "object_rows": options.object_rows,
         "columns": COLUMNS, "batch_size": BATCH,
         "text_rows": options.text_rows, "different_texts": options.different,
         "frames": frames, "category": category,
         "compared": [
             said("first batch of numbers, seconds",
                  median(frames, "frame_numbers", "seconds"), 0.05),
             said("first batch of numbers, processor seconds",
                  median(frames, "frame_numbers", "cpu_s"), 0.05),
             said("first batch of mixed columns / a copy of the frame",
                  beside_copy("mixed"), 1),
             said("first batch of objects as texts / a copy of the frame",
                  beside_copy("objects"), 1),
             said("first batch of an object a row / a copy of the frame",
                  beside_copy("own_objects"), 1),
             said("category, seconds / hashing the column",
                  median(category, "category", "seconds")
                  / median(category, "category_hashed", "seconds"), 2),
             said("category, processor time / hashing the column",
                  median(category, "category", "cpu_s")
                  / median(category, "category_hashed", "cpu_s"), 2)]})


if __name__ == "__main__":
    main()
