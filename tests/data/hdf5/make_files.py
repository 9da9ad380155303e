#!/usr/bin/env python3
"""Writes the files of HDF5 of this folder with h5py, and expected.json: what h5py
reads from them again. Needs h5py and hdf5plugin.

    python tests/data/hdf5/make_files.py

expected.json: for each file {"settings", "columns": {name: {"type", "rows"}}},
where a row is a number, a text, a list of numbers (flat, in C order), or null, or
the name of a column that has the same rows; or {"settings", "column", "error"}: words of the error that it must give.
"""
import json
import pathlib

import h5py
import hdf5plugin
import numpy as np

HERE = pathlib.Path(__file__).parent
expected = {}
random = np.random.default_rng(7)


def flat(value):
    if value is None:
        return None
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, str):
        return value
    value = np.asarray(value)
    if value.dtype == bool:
        value = value.astype(int)
    return value.item() if value.ndim == 0 else value.ravel().tolist()


def expect(name, columns, key=None, **settings):
    expected.setdefault(name, []).append({
        "settings": settings,
        "columns": {column: rows if isinstance(rows, str) else
                    [flat(row) for row in rows]
                    for column, rows in columns.items()}})


def refuse(name, column, error, **settings):
    expected.setdefault(name, []).append(
        {"settings": settings, "column": column, "error": error})


def plain():
    n = 40
    with h5py.File(HERE / "plain.h5", "w") as file:
        file.attrs["site"] = "north"
        file.attrs["gain"] = 2.5
        x = file.create_dataset("x", data=random.normal(size=(n, 2, 3)).astype("f4"))
        x.attrs["rate"] = 16000
        data = {
            "y": np.arange(n, dtype="i2") - 5,
            "big": random.normal(size=n).astype(">f8"),
            "bigs": random.integers(-9, 9, (n, 3)).astype(">i4"),
            "half": random.normal(size=(n, 4)).astype("f2"),
            "tiny": np.array([6e-8, -1e-5, np.float16(65504), 0] * 10, "f2"),
            "bytes": random.integers(0, 255, n).astype("u1"),
            "wide": (np.arange(n, dtype="u8") + 2**52),
            "flag": np.arange(n) % 3 == 0,
            "fixed": np.array([f"name {i}" for i in range(n)], "S10"),
        }
        for name, values in data.items():
            file[name] = values
        texts = [f"gruß {i}" if i % 4 else "" for i in range(n)]
        file.create_dataset("texts", data=texts, dtype=h5py.string_dtype())
        pair = np.zeros(n, [("a", "i4"), ("b", "f8", (2,)), ("c", "S3")])
        pair["a"] = np.arange(n)
        pair["b"] = random.normal(size=(n, 2))
        pair["c"] = b"xy"
        file["pair"] = pair
        file["complex"] = (np.arange(n) + 1j * np.arange(n)[::-1])
        file["compact/z"] = 0  # a scalar is no column
        space = h5py.h5s.create_simple((n,))
        options = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        options.set_layout(h5py.h5d.COMPACT)
        compact = h5py.h5d.create(file.id, b"small", h5py.h5t.STD_I32LE, space,
                                  options)
        compact.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(n, dtype="i4"))
        brain = h5py.h5t.IEEE_F32LE.copy()
        brain.set_fields(15, 7, 8, 0, 7)
        brain.set_size(2)
        brain.set_ebias(127)
        brains = h5py.h5d.create(file.id, b"brain", brain, space)
        brains.write(h5py.h5s.ALL, h5py.h5s.ALL,
                     np.arange(n, dtype="f4") - 3.5, h5py.h5t.NATIVE_FLOAT)
        columns = {"/" + name: values for name, values in data.items()}
        columns |= {
            "/x": x[:], "/texts": texts, "/pair.a": pair["a"],
            "/pair.b": pair["b"], "/pair.c": pair["c"],
            "/complex.r": np.arange(n), "/complex.i": np.arange(n)[::-1],
            "/small": np.arange(n), "@site": ["north"] * n, "@gain": [2.5] * n,
            "/brain": np.arange(n, dtype="f4") - 3.5, "/x@rate": [16000] * n}
    expect("plain.h5", columns)
    refuse("plain.h5", "/compact/z", "single value")


def filtered():
    n = 50
    x = np.round(random.normal(size=(n, 3, 4)), 2).astype("f4")
    y = np.arange(n, dtype="i8") // 3
    kinds = {
        "none": {},
        "deflate": {"compression": "gzip"},
        "shuffle": {"compression": "gzip", "shuffle": True},
        "fletcher": {"compression": "gzip", "shuffle": True,
                     "fletcher32": True},
        "lzf": {"compression": "lzf", "shuffle": True},
        "lz4": hdf5plugin.LZ4(nbytes=200),
        "zstd": hdf5plugin.Zstd(),
        "blosc_lz4": hdf5plugin.Blosc(cname="lz4"),
        "blosc_zstd": hdf5plugin.Blosc(cname="zstd",
                                       shuffle=hdf5plugin.Blosc.BITSHUFFLE),
        "bitshuffle": hdf5plugin.Bitshuffle(cname="none"),
        "bitshuffle_lz4": hdf5plugin.Bitshuffle(nelems=64, cname="lz4"),
        "bitshuffle_zstd": hdf5plugin.Bitshuffle(cname="zstd"),
    }
    with h5py.File(HERE / "filters.h5", "w") as file:
        columns = {}
        for name, how in kinds.items():
            how = dict(how)
            file.create_dataset(f"{name}/x", data=x, chunks=(16, 3, 4), **how)
            file.create_dataset(f"{name}/odd", data=x, chunks=(9, 2, 4), **how)
            file.create_dataset(f"{name}/y", data=y, chunks=(33,), **how)
            columns |= {f"/{name}/x": x if name == "none" else "/none/x",
                        f"/{name}/odd": "/none/x",
                        f"/{name}/y": y if name == "none" else "/none/y"}
        file.create_dataset("bzip2", data=x, chunks=(16, 3, 4),
                            **hdf5plugin.BZip2())
        sparse = file.create_dataset("sparse", shape=(n,), chunks=(8,),
                                     dtype="f4", fillvalue=-7)
        sparse[20:30] = 1
        columns["/sparse"] = sparse[:]
        never = file.create_dataset("never", shape=(n,), dtype="i4",
                                    fillvalue=3)
        columns["/never"] = never[:]
    expect("filters.h5", columns)
    refuse("filters.h5", "/bzip2", "filter 307 (bzip2)")


def latest():
    n = 64
    x = random.integers(0, 100, (n, 3)).astype("i4")
    with h5py.File(HERE / "latest.h5", "w", libver=("v110", "v110")) as file:
        file.create_dataset("fixed", data=x, chunks=(4, 3))
        file.create_dataset("grows", data=x, chunks=(4, 3),
                            maxshape=(None, 3), compression="gzip")
        file.create_dataset("both", data=x, chunks=(4, 2),
                            maxshape=(None, None))
        file.create_dataset("single", data=x, chunks=(n, 3),
                            compression="gzip")
        options = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        options.set_chunk((4, 3))
        options.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        early = h5py.h5d.create(file.id, b"early", h5py.h5t.STD_I32LE,
                                h5py.h5s.create_simple((n, 3)), options)
        early.write(h5py.h5s.ALL, h5py.h5s.ALL, x)
        file["plain"] = x
    expect("latest.h5", {"/" + name: x for name in
                         ("fixed", "grows", "both", "single", "early",
                          "plain")})


def newer():
    """With the format of HDF5 2.0, which h5py 3.16 has."""
    with h5py.File(HERE / "newer.h5", "w", libver="latest") as file:
        file["plain"] = np.arange(8)
        file.create_dataset("grows", data=np.arange(8), chunks=(4,),
                            maxshape=(None,), compression="gzip")
    refuse("newer.h5", "/grows", "a newer HDF5")
    expect("newer.h5", {"/plain": np.arange(8)})


def ragged():
    lists = [random.normal(size=k).astype("f4") for k in (3, 0, 5, 1, 8)]
    with h5py.File(HERE / "ragged.h5", "w") as file:
        vlen = file.create_dataset("list", (5,), h5py.vlen_dtype("f4"))
        for row, values in enumerate(lists):
            vlen[row] = values
        shorts = file.create_dataset("shorts", (5,), h5py.vlen_dtype(">i2"),
                                     chunks=(2,), compression="gzip")
        for row, values in enumerate(lists):
            shorts[row] = np.arange(len(values))
        file["cut/values"] = np.concatenate(lists)
        file["cut/offsets"] = np.cumsum([0] + [len(one) for one in lists])
        file["cut/label"] = np.arange(5)
        file["bad/values"] = np.arange(4.0)
        file["bad/offsets"] = [0, 3, 2, 4]
    expect("ragged.h5", {"/list": lists,
                         "/shorts": [np.arange(len(one)) for one in lists]})
    expect("ragged.h5", {"/cut/values": lists, "/cut/label": np.arange(5)},
           group="/cut", ragged={"/cut/values": "/cut/offsets"})
    refuse("ragged.h5", "/bad/values", "offset 2 is 2", group="/bad",
           ragged={"/bad/values": "/bad/offsets"})


def samples():
    shapes = [(3, 2), (5, 2), (1, 2)]
    data = [random.normal(size=shape).astype("f4") for shape in shapes]
    names = ["a", "b", "c"]
    with h5py.File(HERE / "samples.h5", "w") as file:
        for name, values in zip(names, data):
            group = file.create_group(f"events/{name}")
            group.attrs["label"] = ord(name)
            group.create_dataset("x", data=values, compression="gzip")
            group["equal"] = np.arange(4) + ord(name)
            group["what"] = f"event {name}"
            set_ = file.create_dataset(f"clips/{name}", data=values)
            set_.attrs["class"] = f"class {name}"
    expect("samples.h5", {
        "/x": data, "/equal": [np.arange(4) + ord(n) for n in names],
        "/what": [f"event {n}" for n in names], "name": names,
        "@label": [ord(n) for n in names]}, group="/events", samples="groups")
    expect("samples.h5", {"data": data, "name": names,
                          "@class": [f"class {n}" for n in names]},
           group="/clips", samples="data_sets")


def virtual():
    (HERE / "parts").mkdir(exist_ok=True)
    parts = []
    layout = h5py.VirtualLayout((25, 3), "i4", maxshape=(25, 3))
    for part in range(2):
        values = random.integers(0, 99, (10, 3)).astype("i4")
        parts.append(values)
        with h5py.File(HERE / f"parts/p{part}.h5", "w") as file:
            file.create_dataset("x", data=values, chunks=(4, 3),
                                compression="gzip")
        source = h5py.VirtualSource(f"parts/p{part}.h5", "x", (10, 3))
        layout[12 * part:12 * part + 10] = source
    columns = h5py.VirtualLayout((10, 6), "i4")
    columns[:, :3] = h5py.VirtualSource("parts/p0.h5", "x", (10, 3))
    with h5py.File(HERE / "virtual.h5", "w", libver=("v110", "v110")) as file:
        file.create_virtual_dataset("x", layout, fillvalue=-1)
        file.create_virtual_dataset("columns", columns)
    with h5py.File(HERE / "virtual.h5") as file:
        expect("virtual.h5", {"/x": file["x"][:]})
    refuse("virtual.h5", "/columns", "whole rows")


def matlab():
    """As MATLAB 7.3 lays files out: a block of text before them, arrays with
    their dimensions in reverse."""
    x = random.normal(size=(30, 4, 2))
    y = np.arange(30.0)
    with h5py.File(HERE / "matlab.mat", "w", userblock_size=512) as file:
        file.create_dataset("X", data=x.transpose(), chunks=(2, 3, 7),
                            compression="gzip").attrs["MATLAB_class"] = \
            np.bytes_("double")
        file["plain"] = x.transpose()
        file["y"] = y.reshape(1, 30)
        file["names"] = np.array([["a"] * 30], h5py.string_dtype())
        file["#refs#/a"] = 1
    with open(HERE / "matlab.mat", "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(116))
    expect("matlab.mat", {"/X": x, "/plain": x, "/y": y,
                          "/names": ["a"] * 30})


def refused():
    with h5py.File(HERE / "refused.h5", "w") as file:
        file["x"] = np.arange(20.0)
        file["short"] = np.arange(19)
        file.create_dataset("refs", (20,), h5py.ref_dtype)
        file["several"] = np.array([[b"a", b"b"]] * 20)
        file["away"] = h5py.ExternalLink("other.h5", "/x")
        file["nowhere"] = h5py.SoftLink("/not/there")
        file["again"] = h5py.SoftLink("/x")
        file.create_dataset("long", data=np.zeros(20, np.longdouble))
    expect("refused.h5", {"/short": np.arange(19)})
    refuse("refused.h5", "/refs", "references to objects")
    refuse("refused.h5", "/several", "several values of type text")
    refuse("refused.h5", "/away", "leads to another file")
    refuse("refused.h5", "/nowhere", "leads to nothing")
    refuse("refused.h5", "/long", "floats of 128 bits")
    refuse("refused.h5", "/y", "does not exist")
    expect("refused.h5", {"/x": np.arange(20.0), "/again": np.arange(20.0)})
    with h5py.File(HERE / "labels.h5", "w") as file:
        file["y"] = np.arange(20) * 3
    expect("refused.h5", {"/x": np.arange(20.0), "/y": np.arange(20) * 3},
           labels="labels.h5")


for write in (plain, filtered, latest, newer, ragged, samples, virtual, matlab,
              refused):
    write()
(HERE / "expected.json").write_text(json.dumps(expected))
