"""Makes the Zarr stores of this folder with zarr 3, numcodecs and xarray.
Element [i, j] of each array is 10 i + j, in chunks of 2 x 2; `y` counts rows."""
import pathlib
import shutil

import numcodecs
import numpy as np
import xarray
import zarr
from zarr.codecs import (BloscCodec, BytesCodec, Crc32cCodec, GzipCodec,
                         TransposeCodec, ZstdCodec)

HERE = pathlib.Path(__file__).resolve().parent
X = (10 * np.arange(5)[:, None] + np.arange(3))
for old in HERE.glob("*.zarr"):
    shutil.rmtree(old)


def store(name, version):
    return zarr.open_group(HERE / f"{name}.zarr", mode="w",
                           zarr_format=version)


def put(group, name, values, **settings):
    array = group.create_array(
        name, shape=values.shape, dtype=values.dtype,
        **{"chunks": (2,) * values.ndim, **settings})
    array[...] = values


two = store("two", 2)
for name, codec in (("plain", None), ("gzip", numcodecs.GZip(5)),
                    ("zlib", numcodecs.Zlib(5)), ("zstd", numcodecs.Zstd(3)),
                    ("lz4", numcodecs.LZ4()),
                    ("blosc", numcodecs.Blosc("zstd", shuffle=2)),
                    ("lzma", numcodecs.LZMA())):
    put(two, name, X.astype("<f4"), compressors=codec)
put(two, "fortran", X.astype(">i2"), order="F", compressors=None)
put(two, "shuffled", X.astype("<i4"), filters=[numcodecs.Shuffle(4)],
    compressors=numcodecs.Zlib(5),
    chunk_key_encoding={"name": "v2", "separator": "/"})
put(two, "y", np.arange(5, dtype="<i8"))
hole = two.create_array("hole", shape=(5,), chunks=(2,), dtype="<f8",
                        fill_value=7.0)
hole[0] = 1
put(two, "group/long", np.arange(23, dtype="<f4"), chunks=(4,))
put(two, "flags", np.arange(5) > 2)

three = store("three", 3)
for name, codec in (("plain", None), ("gzip", GzipCodec(level=5)),
                    ("zstd", ZstdCodec(level=3)),
                    ("blosc", BloscCodec(cname="lz4", shuffle="shuffle")),
                    ("crc", Crc32cCodec())):
    put(three, name, X.astype("f4"), compressors=codec)
put(three, "sharded", X.astype("f4"), chunks=(1, 2), shards=(4, 2))
put(three, "big", X.astype("f8"), serializer=BytesCodec(endian="big"))
put(three, "turned", X.astype("i4"), filters=[TransposeCodec(order=(1, 0))])
put(three, "y", np.arange(5, dtype="i8"))

# Texts of any length in several codecs, and of one length; chunks of three.
NAMES = np.array(["hum", "", "chirp", "Knall", "größe"])
for version in (2, 3):
    texts = store(f"texts{version}", version)
    for name, settings in (("plain", {"compressors": None}), ("packed", {}),
                           ("gzip", {"compressors": GzipCodec(level=5)
                                     if version == 3 else numcodecs.GZip(5)})):
        array = texts.create_array(name, shape=(5,), chunks=(3,), dtype=str,
                                   **settings)
        array[...] = NAMES.astype(object)
    put(texts, "letters", NAMES.astype("<U5"), chunks=(3,))
    put(texts, "y", np.arange(5), chunks=(3,))
    texts.create_array("hole", shape=(5,), chunks=(3,), dtype=str,
                       fill_value="none")
    # What no column can hold stands beside them.
    put(texts, "complex", np.arange(5) * 1j, chunks=(3,))

values = xarray.Dataset({
    "t": (("time", "place"), (X / 2).astype("f8"))},
    coords={"time": np.arange(5)})
values["t"].values[1, 2] = np.nan
for version in (2, 3):
    values.to_zarr(HERE / f"xarray{version}.zarr", zarr_format=version,
                   encoding={"t": {"dtype": "int16", "scale_factor": 0.5,
                                   "add_offset": -3.0, "_FillValue": -99,
                                   "chunks": (2, 3)}})
