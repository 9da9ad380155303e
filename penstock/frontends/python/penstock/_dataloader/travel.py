"""How the data set and what belongs to it travel to the server."""
import hashlib

from . import packing
from ..errors import worded
from .errors import NotPicklable

_HASHED_BYTES = 1 << 26  # of a data set's arrays, to see whether it changed


def digest_of(parts):
    """Changes when what is pickled does. Of arrays beyond 64 MB only where
    they lie and a part of what they hold is looked at."""
    seen, left = hashlib.blake2b(parts[0], digest_size=16), _HASHED_BYTES
    for part in parts[1:]:
        if part.nbytes <= left:
            seen.update(part)
            left -= part.nbytes
        else:
            import numpy as np

            raw = np.frombuffer(part, dtype=np.uint8)
            stride = max(1, len(raw) >> 16)
            seen.update(raw[::stride].tobytes())
            seen.update(b"%d %d" % (raw.ctypes.data, len(raw)))
    return seen.digest()


def pickled(dataset, collate_fn, worker_init_fn):
    """What travels to the server: (parts, main), or NotPicklable."""
    from multiprocessing import spawn

    main = spawn.get_preparation_data("penstock")
    main = {key: main[key] for key in
            ("sys_path", "sys_argv", "dir", "init_main_from_name",
             "init_main_from_path") if key in main}
    has_main = "init_main_from_name" in main or "init_main_from_path" in main
    things = dataset, collate_fn, worker_init_fn
    reason = None
    try:
        parts = packing.flatten(things)
        if has_main or b"__main__" not in bytes(parts[0]):
            return parts, main
    except Exception as error:
        reason = error
    parts = _by_cloudpickle(things)
    if parts is not None:
        return parts, main
    raise _not_picklable(things, reason)


def _by_cloudpickle(things):
    """For lambdas and classes of a notebook, where cloudpickle is there."""
    try:
        import cloudpickle
    except ImportError:
        return None
    arrays = []
    try:
        text = cloudpickle.dumps(things, protocol=5,
                                 buffer_callback=arrays.append)
    except Exception:
        return None
    return [memoryview(text), *(array.raw() for array in arrays)]


def _not_picklable(things, reason):
    names = ("the data set", "collate_fn", "worker_init_fn")
    for name, thing in zip(names, things):
        try:
            text = bytes(packing.flatten(thing)[0])
            if reason is None and b"__main__" in text:
                reason = "it is defined in a session that has no file"
                break
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            break
    return worded(
        NotPicklable, "workers.pickle",
        f"{name} cannot travel to the helper processes",
        f"a {type(thing).__name__}", str(reason),
        "define it at the top level of a file, install cloudpickle, or set "
        "num_workers=0 or workers=\"threads\"")
