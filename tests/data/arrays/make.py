"""Makes the arrays of this folder with numpy. Element [i, j] of each array of
numbers is 10 i + j; the texts are those of NAMES."""
import json
import pathlib
import struct

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
NAMES = ["hum", "", "chirp", "Knall", "größe"]
X = (10 * np.arange(5)[:, None] + np.arange(3)).astype("<f4")

np.save(HERE / "c.npy", X)
np.save(HERE / "fortran.npy", np.asfortranarray(X.astype("<i2")))
np.save(HERE / "cube.npy", np.asfortranarray(
    np.arange(5 * 2 * 3).reshape(5, 2, 3).astype("<i4")))
np.save(HERE / "big.npy", X.astype(">f8"))
np.save(HERE / "half.npy", X.astype("<f2"))
np.save(HERE / "flags.npy", X[:, 0] >= 20)
np.save(HERE / "letters.npy", np.array(NAMES))
np.save(HERE / "bytes.npy", np.array([n.encode() for n in NAMES]))
np.save(HERE / "objects.npy", np.array([{}, 1], dtype=object))
np.save(HERE / "fields.npy", np.zeros(3, dtype=[("a", "<f4"), ("b", "<i4")]))
np.save(HERE / "complex.npy", np.zeros(3, dtype="<c8"))
np.save(HERE / "single.npy", np.float32(3))
np.save(HERE / "long.npy", np.arange(23, dtype="<f4"))
for name, write in (("stored", np.savez), ("packed", np.savez_compressed)):
    write(HERE / f"{name}.npz", x=X, y=np.arange(5, dtype="<i8"),
          letters=np.array(NAMES), long=np.arange(23, dtype="<f4"),
          one=np.float32(1), objects=np.array([{}], dtype=object))

bfloat = (X.view("<u4") >> 16).astype("<u2")  # these numbers are exact in it
parts, header, at = [], {"__metadata__": {"format": "pt"}}, 0
for name, dtype, array in (("x", "F32", X), ("b", "BF16", bfloat),
                           ("y", "I64", np.arange(5, dtype="<i8"))):
    raw = array.tobytes()
    header[name] = {"dtype": dtype, "shape": list(array.shape),
                    "data_offsets": [at, at + len(raw)]}
    parts.append(raw)
    at += len(raw)
text = json.dumps(header).encode()
(HERE / "t.safetensors").write_bytes(
    struct.pack("<Q", len(text)) + text + b"".join(parts))
