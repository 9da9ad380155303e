"""penstock.watch changes nothing of what it watches: what a program may do with
a loop gives the same with it and without."""
import collections.abc
import copy
import inspect
import io
import operator
import pickle
import types
import unittest

import numpy

import penstock
from positions import has
from entry import main


class Sequence:
    """A data set: by __len__ and __getitem__ alone."""

    def __init__(self):
        self.epoch, self._private = 0, "mine"

    def __len__(self):
        return 5

    def __getitem__(self, index):
        if not 0 <= index < 5:
            raise IndexError(index)
        return index * 10 + self.epoch

    def set_epoch(self, epoch):
        self.epoch = epoch


class Resource:
    """What is opened, iterated over and closed, and has a state."""
    kind = "resource"

    def __init__(self):
        self.log, self._state = [], 1

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, *raised):
        self.log.append(raised[0])
        return raised[0] is KeyError

    def __iter__(self):
        return iter([self._state, self._state + 1])

    def __call__(self, *values, **named):
        return values, named

    def __iadd__(self, more):
        self._state += more
        return self

    def __bool__(self):
        return self._state > 0

    @property
    def state(self):
        return self._state

    @state.setter
    def state(self, value):
        if value < 0:
            raise ValueError("a state is not negative")
        self._state = value


class Raising:
    """An iterator that goes on after it has raised."""

    def __init__(self):
        self.at = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.at += 1
        if self.at == 2:
            raise RuntimeError("once")
        if self.at > 4:
            raise StopIteration
        return self.at


def generator():
    """Yields what it is sent, and what was thrown into it."""
    got = 0
    for _ in range(6):
        try:
            got = (yield got) or got + 1
        except KeyError as error:
            got = f"caught {error}"
    return "the end"


def loader():
    return penstock.Loader({"x": numpy.arange(12.)}, batch_size=4)


def torch_loader():
    import torch.utils.data
    return torch.utils.data.DataLoader(Sequence(), batch_size=2)


LOOPS = {"list": lambda: [3, 1, 2], "empty list": lambda: [],
         "tuple": lambda: (1, 2), "dict": lambda: {"a": 1, "b": 2},
         "range": lambda: range(4), "generator": generator,
         "iterator": lambda: iter([1, 2, 3]), "numpy": lambda: numpy.arange(3),
         "data set": Sequence, "resource": Resource, "raising": Raising,
         "Loader": loader}
if has("torch"):
    LOOPS["DataLoader"] = torch_loader


def values(loop):
    return [plain(batch) for batch in loop]


def plain(value):
    """What can be compared."""
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "host"):  # a batch of ours
        return {name: array.tolist() for name, array in value.host().items()}
    return value


def with_it(loop):
    with loop as opened:
        return opened is loop, values(opened)


def left_by(raised):
    def leave(loop):
        with loop:
            raise raised("out of it")
    return leave


def set_and_seen(name, value):
    def change(loop):
        setattr(loop, name, value)
        return getattr(loop, name), vars(loop).get(name), values(loop)
    return change


def deleted(loop):
    loop.added = 1
    del loop.added
    return loop.added


def iadd(loop, more):
    before = loop
    loop += more
    return loop is before, plain(loop[:2]) if isinstance(loop, list) else \
        values(loop)


def sent(loop):
    batches = iter(loop)
    found = [next(batches), batches.send(40), next(batches),
             batches.throw(KeyError("k")), batches.send(None)]
    batches.close()
    return found, next(batches, "closed")


def sent_to_it(loop):
    return loop.send(None), loop.send(7), loop.throw(KeyError("k")), next(loop)


def returned(loop):
    def around():
        return (yield from loop)
    whole = around()
    while True:
        try:
            next(whole)
        except StopIteration as end:
            return end.value


def after_an_error(loop):
    batches, found = iter(loop), []
    for _ in range(6):
        try:
            found.append(plain(next(batches)))
        except Exception as error:  # of the loop's own
            found.append(repr(error))
        except BaseException as error:
            raise AssertionError from error
    return found


USES = {
    "for": values, "for twice": lambda loop: (values(loop), values(loop)),
    "for in for": lambda loop: [(plain(a), plain(b)) for a in loop
                                for b in loop],
    "zip with itself": lambda loop: [plain(pair) for pair in zip(loop, loop)],
    "enumerate": lambda loop: values(enumerate(loop)),
    "unpack": lambda loop: plain([*loop]),
    "yield from": returned,
    "len": len, "bool": bool, "not": operator.not_,
    "length hint": operator.length_hint,
    "length hint of an iteration": lambda loop: operator.length_hint(
        iter(loop)),
    "first": lambda loop: plain(loop[0]), "last": lambda loop: plain(loop[-1]),
    "slice": lambda loop: plain(loop[:2]), "no such": lambda loop: loop["zz"],
    "set an item": lambda loop: (operator.setitem(loop, 0, 9), values(loop)),
    "delete an item": lambda loop: (operator.delitem(loop, 0), values(loop)),
    "in": lambda loop: 2 in loop, "reversed": lambda loop: values(
        reversed(loop)),
    "next": lambda loop: next(loop), "send": sent_to_it,
    "an iteration's send": sent, "after an error": after_an_error,
    "is a generator": inspect.isgenerator,
    "an iteration is a generator": lambda loop: inspect.isgenerator(
        iter(loop)),
    "isinstance": lambda loop: [isinstance(loop, of) for of in (
        list, tuple, dict, range, types.GeneratorType, Sequence, Resource,
        penstock.Loader, collections.abc.Sized, collections.abc.Sequence,
        collections.abc.Mapping, collections.abc.Iterator)],
    "class": lambda loop: loop.__class__, "hash": lambda loop: hash(loop) and 1,
    "equal to itself": lambda loop: plain(loop == loop),
    "equal to a list": lambda loop: plain(loop == [3, 1, 2]),
    "sorted": lambda loop: sorted(loop), "sum": sum,
    "plus": lambda loop: loop + loop, "times": lambda loop: plain(loop * 2),
    "plus a list": lambda loop: iadd(loop, [4]), "iadd": lambda loop: iadd(
        loop, 4),
    "call": lambda loop: loop(1, named=2), "with": with_it,
    "left by KeyError": left_by(KeyError), "left by OSError": left_by(OSError),
    "attribute": lambda loop: loop.epoch, "private": lambda loop: loop._private,
    "of the class": lambda loop: loop.kind, "missing": lambda loop: loop.zz,
    "missing private": lambda loop: loop._zz,
    "method": lambda loop: (loop.set_epoch(3), values(loop)),
    "set": set_and_seen("epoch", 4), "set anew": set_and_seen("added", 1),
    "set private": set_and_seen("_state", 8), "property": set_and_seen(
        "state", 5),
    "refused by its property": set_and_seen("state", -1), "deleted": deleted,
    "append": lambda loop: (loop.append(5), values(loop)),
    "keys": lambda loop: list(loop.keys()), "shape": lambda loop: loop.shape,
    "array": lambda loop: numpy.asarray(loop).shape,
    "batch_size": lambda loop: loop.batch_size,
    "set batch_size": set_and_seen("batch_size", 3),
    "set num_workers": set_and_seen("num_workers", 0),
    "set collate_fn": set_and_seen("collate_fn", len),
    "sampler": lambda loop: type(loop.sampler),
    "state_dict": lambda loop: loop.state_dict(),
    "dir": lambda loop: [name for name in dir(loop)
                         if name not in ("explain", "report")],
    "vars": lambda loop: sorted(vars(loop)),
    "pickle": lambda loop: values(pickle.loads(pickle.dumps(loop))),
    "copy": lambda loop: values(copy.copy(loop)),
    "deep copy": lambda loop: values(copy.deepcopy(loop)),
    "str": lambda loop: str(loop).partition(" at 0x")[0],
    "match": lambda loop: matched(loop)}


def matched(loop):
    match loop:
        case [first, *_]:
            return "a sequence", plain(first)
        case {"a": value}:
            return "a mapping", value
        case Sequence(epoch=epoch):
            return "a data set", epoch
    return "something else"


# What asks in C for a dict itself, and not for its like.
LEFT_OUT = {("dict", "array")}


def outcome(use, loop):
    """What it gives, or the class and text of what it raises. Python words
    these a little differently for classes that are written in C."""
    try:
        return plain(use(loop))
    except Exception as error:
        return type(error).__name__, str(error).replace(
            "numpy.ndarray", "ndarray").replace("doesn't", "does not")


class WatchIsAProxy(unittest.TestCase):
    def test_whatever_is_done_with_a_loop_gives_the_same(self):
        for name, made in LOOPS.items():
            for what, use in USES.items():
                if (name, what) in LEFT_OUT:
                    continue
                with self.subTest(loop=name, use=what):
                    plainly = outcome(use, made())
                    watched = outcome(use, penstock.watch(
                        made(), file=io.StringIO()))
                    self.assertEqual(watched, plainly)

    def test_what_is_set_reaches_the_loop_behind(self):
        behind = Sequence()
        watched = penstock.watch(behind)
        watched.epoch, watched._private = 2, "changed"
        self.assertEqual((behind.epoch, behind._private), (2, "changed"))
        behind.epoch = 3
        self.assertEqual(watched.epoch, 3)

    def test_a_copy_is_watched_too(self):
        watched = penstock.watch([1] * 20, file=(file := io.StringIO()))
        for again in copy.copy(watched), pickle.loads(pickle.dumps(watched)):
            self.assertEqual(again.explain().limit, "unknown")
        list(copy.copy(watched))
        self.assertEqual(file.getvalue().count("penstock: "), 1)

    def test_values_that_are_sent_are_measured_like_others(self):
        watched = penstock.watch(generator(), file=io.StringIO())
        batches = iter(watched)
        next(batches)
        for value in range(4):
            batches.send(value)
        self.assertEqual(watched._penstock_watch._meter.batches, 5)


if __name__ == "__main__":
    main()
