"""One rank of several: which one, and whether all have opened the same."""

from __future__ import annotations

import contextlib
import datetime
import os
import sys
import time
from typing import Any, Callable, Iterator, Protocol, Sequence

from .. import _engine
from ..errors import Error, refused, said

Agree = Callable[[bytes], Sequence[bytes]]

# As torch's own limit where a store does not say one.
_LONGEST = datetime.timedelta(minutes=30)
# How long a rank that failed waits for the others to read that.
_LAST_WORDS_S = 5.0
_POLL_S = 0.001, 0.05  # the first, and the longest, wait for a key


class _Gather(Protocol):
    """An all-gather that a rank can leave without waiting for the others."""

    def __call__(self, mine: bytes) -> Sequence[bytes]: ...

    def leave(self, mine: bytes) -> None: ...


class Ranks:
    """One rank of `world`, which compares what it opens with the others.

    Each opening gathers once, or every rank waits for the one that did not:
    so an opening that fails reports that to the others.
    """

    def __init__(self, rank: int | None, world: int | None,
                 agree: Agree | None) -> None:
        self.rank, self.world = _place(rank, world)
        self._gather: _Gather | None = None
        if agree is not None:
            self._gather = _Given(agree)
        elif self.world > 1:
            self._gather = _of_torch(self.world)
        self._compared = False

    @property
    def can_agree(self) -> bool:
        return self._gather is not None

    def compare(self, engine: _engine.Engine) -> None:
        """Raises an Error, and closes the engine, where not all ranks have
        opened the same."""
        if self._gather is None:
            return
        try:
            facts = engine.rank_facts()
            self._compared = True
            _engine.compare_ranks(self.rank, self.world, facts, self._gather)
        except BaseException:
            engine.close()
            raise

    @contextlib.contextmanager
    def opening(self) -> Iterator[None]:
        """Reports an exception to the other ranks. Not Ctrl-C, which must not
        wait for anybody."""
        try:
            yield
        except Exception as error:
            if self._gather is not None and not self._compared:
                kind = error.kind if isinstance(error, Error) else "request"
                text = _engine.failure_text(self.rank, kind, said(error))
                with contextlib.suppress(Exception):  # `error` comes first
                    self._gather.leave(text)
            raise


class _Given:
    """A function of the caller's: all ranks call it, or none continues."""

    def __init__(self, agree: Agree) -> None:
        self._agree = agree

    def __call__(self, mine: bytes) -> Sequence[bytes]:
        return self._agree(mine)

    def leave(self, mine: bytes) -> None:
        self(mine)


class _Store:
    """Through the store by which torch's process group was made.

    Not by a collective operation of the group: these would be mixed up with
    the training's own where a rank opens no loader, need a GPU under NCCL,
    and wait without an end that names who is missing.

    The n-th loader that a rank opens is compared with the n-th of the others.
    """

    def __init__(self, store: Any, me: int, ranks: int) -> None:
        self._store, self._me, self._ranks = store, me, ranks

    def __call__(self, mine: bytes) -> list[bytes]:
        turn = self._put(mine)
        limit = getattr(self._store, "timeout", _LONGEST).total_seconds()
        missing = self._wait(turn, limit)
        if missing:
            names = ", ".join(map(str, missing[:8]))
            names += ", ..." if len(missing) > 8 else ""
            raise refused(
                "ranks.timeout", "cannot compare the ranks",
                f"rank {self._me} of {self._ranks}",
                f"no such loader was opened within {limit:.0f} s by rank "
                f"{names}",
                "open the same loaders in the same order on every rank, or "
                "raise init_process_group(timeout=...); for a loader that one "
                "rank opens alone, give rank=0 and world=1")
        return [bytes(self._call("get", self._key(turn, rank)))
                for rank in range(self._ranks)]

    def leave(self, mine: bytes) -> None:
        self._wait(self._put(mine), _LAST_WORDS_S)

    def _put(self, mine: bytes) -> int:
        turn = int(self._call("add", f"penstock/loaders/{self._me}", 1))
        self._call("set", self._key(turn, self._me), mine.decode())
        # A rank that has opened the one before has read those before it.
        if turn > 2:
            self._call("delete_key", self._key(turn - 2, self._me))
        return turn

    def _wait(self, turn: int, limit: float) -> list[int]:
        """The ranks that have not come within `limit` seconds. Looks again and
        again, because a wait within torch does not see Ctrl-C."""
        missing = [rank for rank in range(self._ranks) if rank != self._me]
        end, pause = time.monotonic() + limit, _POLL_S[0]
        while True:
            while missing and self._call(
                    "check", [self._key(turn, missing[0])]):
                del missing[0]
            if not missing or time.monotonic() > end:
                return [rank for rank in missing if not self._call(
                    "check", [self._key(turn, rank)])]
            time.sleep(pause)
            pause = min(2 * pause, _POLL_S[1])

    def _call(self, name: str, *arguments: Any) -> Any:
        try:
            return getattr(self._store, name)(*arguments)
        except RuntimeError as error:
            raise refused(
                "ranks.agree", "cannot compare the ranks",
                "the store of torch's process group", said(error),
                "find out why the other ranks have ended, rank 0 first"
                ) from error

    @staticmethod
    def _key(turn: int, rank: int) -> str:
        return f"penstock/loaders/{rank}/{turn}"


class _Collective:
    """By a collective operation, where the group has no store (MPI)."""

    def __init__(self, group: Any) -> None:
        self._group = group

    def __call__(self, mine: bytes) -> list[bytes]:
        of_ranks: list[bytes] = [b""] * self._group.get_world_size()
        self._group.all_gather_object(of_ranks, mine)
        return of_ranks

    def leave(self, mine: bytes) -> None:
        self(mine)


def _of_torch(world: int) -> _Gather | None:
    """Where these ranks are all the processes of torch's group. With others
    (of a group within it) only the caller knows who opens a loader."""
    group = _torch_group()
    if group is None or group.get_world_size() != world:
        return None
    try:
        store = group.distributed_c10d._get_default_store()
    except (AttributeError, RuntimeError, ValueError):
        store = None
    if store is None:
        return _Collective(group)
    return _Store(store, group.get_rank(), world)


def _torch_group() -> Any:
    """torch.distributed, where it is imported and has a process group."""
    group = sys.modules.get("torch.distributed")
    if group is not None and group.is_available() and group.is_initialized():
        return group
    return None


def _place(rank: int | None, world: int | None) -> tuple[int, int]:
    """Rank and world as they were given, else those of torch's process group,
    else as torchrun says."""
    group = _torch_group()
    if group is not None:
        rank = group.get_rank() if rank is None else rank
        world = group.get_world_size() if world is None else world
    if world is None:
        world = _number_in("WORLD_SIZE", 1)
    if rank is None:
        if world > 1 and "RANK" not in os.environ:
            raise refused("loader.rank", "cannot find the rank", "RANK",
                          f"there are {world} ranks, but RANK is not set",
                          "give rank= and world=, or open the loader after "
                          "torch.distributed.init_process_group()")
        rank = _number_in("RANK", 0)
    return rank, world


def _number_in(variable: str, otherwise: int) -> int:
    text = os.environ.get(variable, str(otherwise))
    if not text.isdecimal():
        raise refused("loader.rank", "cannot find the rank", variable,
                      f"found '{text}'", f"set {variable} to a number")
    return int(text)
