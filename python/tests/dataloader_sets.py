"""Data sets of the tests, in a module that worker processes import.

It imports no torch, so that most tests start their workers quickly.
"""
import collections
import collections.abc
import fcntl
import os
import random
import signal
import sys
import threading
import time

import numpy as np

Pair = collections.namedtuple("Pair", "x y")


class Rows:
    """Row i is three times i, and i itself."""

    def __init__(self, n, width=3, **more):
        self.n, self.width = n, width
        self.__dict__.update(more)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if not 0 <= i < self.n:
            raise IndexError(i)
        return np.full(self.width, i, np.float32), i


class Numbers(Rows):
    def __getitem__(self, i):
        return super().__getitem__(i)[1]


class Of(Numbers):
    """Whatever the function gives for an index."""

    def __init__(self, n, function, **more):
        super().__init__(n, **more)
        self.function = function

    def __getitem__(self, i):
        return self.function(i)


class Many(Numbers):
    """Asked for a whole batch at a time; counts how often."""

    def __getitems__(self, ids):
        return [(i, len(ids)) for i in ids]


class TooFew(Numbers):
    def __getitems__(self, ids):
        return ids[1:]


class ThreadRows(Rows):
    releases_gil = True

    def __getitem__(self, i):
        time.sleep(0.001)
        return i, threading.get_ident()


class NoLength:
    def __getitem__(self, i):
        return i


class Bad(Rows):
    """Raises what `error` makes for the indices in `bad`."""

    def __getitem__(self, i):
        if i in self.bad:
            raise self.error(f"row {i} is broken")
        return super().__getitem__(i)


class TwoArguments(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)
        self.one, self.two = one, two


def two_arguments(text):
    return TwoArguments(text, 2)


class Speechless(Exception):
    def __str__(self):
        raise KeyError("no text")


def os_error(text):
    return FileNotFoundError(2, "No such file", text)


class Drawn(Rows):
    """What the generators of this process give, and who drew."""

    def __getitem__(self, i):
        torch = sys.modules.get("torch")
        drawn = [random.random(), float(np.random.random())]
        if torch is not None:
            drawn.append(float(torch.rand(())))
        return i, np.array(drawn), os.getpid()


class Who(Rows):
    """Who fetches: index, pid, worker id as penstock says it."""
    seconds = 0.002

    def __getitem__(self, i):
        time.sleep(self.seconds)
        info = worker_info()
        return i, os.getpid(), -1 if info is None else info.id


def worker_info():
    module = sys.modules.get("penstock._dataloader.worker")
    return module.info if module else None


class Infos(Rows):
    def __getitem__(self, i):
        info = worker_info()
        return info.id, info.num_workers, info.seed, len(info.dataset)


class Slow(Rows):
    def __getitem__(self, i):
        time.sleep(self.seconds)
        return i


class Busy(Rows):
    def __getitem__(self, i):
        until = time.perf_counter() + self.seconds
        while time.perf_counter() < until:
            pass
        return i


class Locked(Rows):
    """Items are made one at a time, in whatever process: `path` is locked."""

    def __getitem__(self, i):
        with open(self.path, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            time.sleep(self.seconds)
        return i


class Hangs(Rows):
    def __getitem__(self, i):
        if i == self.at:
            time.sleep(1000)
        return i


class SlowToUnpickle(Numbers):
    """Workers have it late."""

    def __setstate__(self, state):
        time.sleep(2)
        self.__dict__.update(state)


class ReadyBatches(Rows):
    """Gives whole batches, not their items: a dict, or a list of texts."""

    def __getitems__(self, ids):
        if getattr(self, "form", dict) is list:
            return ["one text"]
        return {"x": np.array(ids), "name": f"{ids[0]}..{ids[-1]}"}


class WaitsFor(Rows):
    """Item 0 comes when the file `path` is there."""

    def __getitem__(self, i):
        while i == 0 and not os.path.exists(self.path):
            time.sleep(0.01)
        return i


class Dies(Rows):
    """Ends its process at one index, by a signal or with a code."""

    def __getitem__(self, i):
        if i == self.at:
            if self.code < 0:
                os.kill(os.getpid(), -self.code)
                time.sleep(10)
            os._exit(self.code)
        return i


class Shrinks(Rows):
    """Loses rows after a few were read."""

    def __getitem__(self, i):
        self.n = 4
        return super().__getitem__(i)[1]


class Kinds(Rows):
    """The name of the index's type."""

    def __getitem__(self, i):
        return type(i).__name__


class Bulk(Rows):
    """Asked for many items at once."""

    def __getitem__(self, ids):
        return np.array(ids)


class Counter(Rows):
    """How often this replica was asked."""
    asked = 0

    def __getitem__(self, i):
        self.asked += 1
        return self.asked


class Raises(Rows):
    """Cannot be unpickled."""
    why = "the volume is not mounted"

    def __setstate__(self, state):
        raise OSError(state.get("why", self.why))


class BeginsSoOften:
    """An iterable data set that can be begun only so often."""

    def __init__(self, n, often):
        self.n, self.left = n, often

    def __iter__(self):
        if self.left == 0:
            raise OSError("the file is gone")
        self.left -= 1
        return iter(range(self.n))


class Stream:
    """An iterable data set: 0..n-1, every replica all of it."""

    def __init__(self, n, length=None):
        self.n = n
        if length is not None:
            self.length = length

    def __iter__(self):
        return iter(range(self.n))

    def __len__(self):
        if not hasattr(self, "length"):
            raise TypeError("no length")
        return self.length


class Shares(Stream):
    """Each worker has its own range: worker w has sizes[w] numbers."""

    def __init__(self, sizes):
        self.sizes = sizes

    def __iter__(self):
        info = worker_info()
        which = 0 if info is None else info.id
        return iter(range(100 * which, 100 * which + self.sizes[which]))


class BrokenStream(Stream):
    def __iter__(self):
        yield from range(self.n)
        raise ValueError("the stream broke")


class NoBeginning(Stream):
    def __iter__(self):
        raise ValueError("there is no beginning")


class Images(Rows):
    """Rows of some size, all of one number."""

    def __getitem__(self, i):
        return np.full(self.shape, i, np.uint8), i


class Nested(Rows):
    """Has a loader of its own inside a worker."""

    def __getitem__(self, i):
        from penstock.dataloader import DataLoader

        inner = DataLoader(Numbers(4), batch_size=2, num_workers=self.inner)
        total = sum(int(number) for batch in inner for number in batch)
        inner.close()
        return total + i


def keep(items):
    return items


def columns(items):
    return list(zip(*items))


def collate_with_info(items):
    info = worker_info()
    return items, None if info is None else info.id


def only_full(items):
    if len(items) < 4:
        raise ValueError(f"{len(items)} items")
    return items


def stops(items):
    raise StopIteration


def draws(items):
    return items, random.random(), float(np.random.random())


def raise_in_init(worker):
    raise RuntimeError(f"worker {worker} will not")


def seed_all(worker):
    random.seed(77)
    np.random.seed(77)


def mark(worker):
    os.environ["PENSTOCK_TEST_MARK"] = f"marked {worker}"


def on_one_processor(worker):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def processors(i):
    return sorted(os.sched_getaffinity(0))


def told_later(i):
    return int(os.environ.get("PENSTOCK_TEST_LATER", -1))


def imports_lazily(i):
    import lazily  # noqa: F401
    return i


def marked(i):
    return os.environ.get("PENSTOCK_TEST_MARK", "")


def ragged(i):
    return np.zeros(4 if i == 6 else 3)


def ragged_field(i):
    return {"a": 1, "b": (np.zeros(2), np.zeros((2, 5) if i == 5 else (2, 4)))}


def as_object(i):
    return np.array([{"a": 1}], dtype=object)


def mixed(i):
    return {"x": np.arange(3) + i, "name": f"row {i}", "ok": i % 2 == 0,
            "half": i / 2, "pair": Pair(i, np.float32(i)), "raw": b"ab",
            "list": [i, float(i)]}


def missing_key(i):
    return {"a": 1} if i == 2 else {"a": 1, "b": 2}


def few_fields(i):
    return [1, 2] if i != 3 else [1]


def no_place(i):
    return object()


def no_place_inside(i):
    return {"x": i, "y": Pair(1, [object()])}


def too_large(i):
    return 2 ** 70


def big(i):
    return np.full((64, 1024), i, np.float32)


def first_is_late(i):
    if i == 0:
        time.sleep(0.2)
    return big(i)


def sizes_differ(i):
    return np.full((i * 7919 % 50_000) + 1, i, np.int64)


MISSING = object()


class Stays:
    """It travels nowhere."""

    def __init__(self, i):
        self.i = i

    def __reduce__(self):
        raise TypeError("it stays")


class LostOnItsWay(collections.abc.Sequence):
    """Two numbers that can be sent and never arrive."""

    def __init__(self, one, other):
        self.pair = one, other

    def __len__(self):
        return 2

    def __getitem__(self, at):
        return self.pair[at]

    def __reduce__(self):
        return LostOnItsWay, ()


def lost_on_its_way(i):
    return LostOnItsWay(i, -i)


def viewed(i):
    """A sequence that pickle refuses."""
    return memoryview(bytes([i, 0]))


class OpensOnceThere:
    """Its attributes are those of a file, which a worker cannot open."""

    def __init__(self, n):
        self.n, self.here = n, (threading.get_ident(), os.getpid())

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return i

    def __getattr__(self, name):
        if name == "__getitems__" and self.here != (threading.get_ident(),
                                                    os.getpid()):
            raise OSError("the file cannot be opened")
        raise AttributeError(name)


def third_stays(i):
    return Stays(i) if i == 3 else i


def missing_or_staying(i):
    return MISSING if i % 4 == 0 else Stays(i)


def what_stays(items):
    return [item.i for item in items if item is not MISSING]


def with_lambda(i):
    return lambda: i


def killed(i):
    os.kill(os.getpid(), signal.SIGKILL)
