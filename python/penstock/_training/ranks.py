"""The ranks that train a module together, over torch.distributed.

Each rank makes the same calls in the same order. A rank that fails writes its
error to the store by which the ranks have found each other; a thread of every
rank watches for that. A rank that was killed writes nothing, but its
connections break: rank 0, which has one to each, writes to the store whose did,
and where it cannot, the ranks list there who is still running. So a call that
ends by a broken connection says why, by `ranks.failed` or `ranks.lost`.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import io
import logging
import os
import re
import socket
import threading
import time
from typing import Any, Iterable, Iterator, NoReturn, Sequence

from .. import _engine
from .._program import end_at_once, end_now
from ..errors import DeviceError, Error, refused, worded

_FIND_MASTER = datetime.timedelta(seconds=10)
_FIND_RANKS = datetime.timedelta(seconds=300)
_LONGEST_STEP = datetime.timedelta(minutes=30)  # as torch's own limit
_WATCH_S, _ASK_AGAIN_S = 0.25, 0.02
_SURVIVORS_S, _LEAVE_S = 1.5, 4.0
_NOTICE_S = 3.5  # in which gloo notices that a rank has gone, if it does: a rank
# whose neighbour notices hears of it when that one has left

# Of gloo, NCCL and the store: torch has no class for all of them.
_OF_CONNECTIONS = re.compile(
    r"gloo|NCCL|ProcessGroup|TCPStore|Connection (closed|reset|refused)|"
    r"Broken pipe|Socket Timeout|Timed out waiting|failed to recv", re.I)


def opened(torch: Any, trains_on_gpu: bool) -> Group | None:
    """The ranks that the environment describes, or those of a process group
    that the caller has made; None where there is one process."""
    dist = torch.distributed
    if dist.is_available() and dist.is_initialized():
        return _of_caller(torch)
    place: Any = _engine.rank_place()
    if place is None:
        return None
    if not dist.is_available():
        raise refused("ranks.no_distributed", "cannot train on several ranks",
                      f"torch {torch.__version__}",
                      "it was built without torch.distributed",
                      "install another build of torch, or start one process")
    store = _store_of(dist, place)
    with_gpus = trains_on_gpu and torch.cuda.is_available() \
        and dist.is_nccl_available()
    if with_gpus:
        torch.cuda.set_device(place["local_rank"] % torch.cuda.device_count())
    backend = "cpu:gloo,cuda:nccl" if with_gpus else "gloo"
    try:
        dist.init_process_group(
            backend, store=dist.PrefixStore("group", store),
            rank=place["rank"], world_size=place["world"],
            timeout=_LONGEST_STEP)
    except Exception as error:
        raise worded(
            DeviceError, "ranks.lost", "lost another rank while finding the "
            "other ranks", f"rank {place['rank']} of {place['world']}",
            _first_line(error), "find out which rank did not start, and start "
            "all ranks again") from error
    return Group(torch, store, place, "nccl" if with_gpus else "gloo")


def _store_of(dist: Any, place: dict[str, Any]) -> Any:
    serves = place["rank"] == 0 and not place["store_is_served"]
    where = f"{place['master']}:{place['port']}"
    try:
        store = dist.TCPStore(place["master"], place["port"], place["world"],
                              serves, timeout=_FIND_MASTER,
                              wait_for_workers=False)
    except Exception as error:
        if serves:
            raise refused(
                "ranks.port", "rank 0 cannot serve the other ranks", where,
                _first_line(error), "set MASTER_PORT to a free port on all "
                "ranks, and MASTER_ADDR to a host name of this machine"
                ) from error
        raise refused(
            "ranks.master", "cannot reach the other ranks",
            f"rank {place['rank']} of {place['world']}, {where}",
            "no answer came within 10 s: " + _first_line(error),
            "start rank 0 on that host, and check MASTER_ADDR, MASTER_PORT "
            "and the firewall between the machines") from error
    store.set_timeout(_FIND_RANKS)
    return dist.PrefixStore("penstock/own/" + place["attempt"], store)


def packed(torch: Any, values: Any) -> bytes:
    """Tensors, numbers and lists of them, for other ranks."""
    text = io.BytesIO()
    torch.save(values, text)
    return text.getvalue()


def unpacked(torch: Any, text: bytes) -> Any:
    return torch.load(io.BytesIO(text), weights_only=True)


_runs = 0  # of the caller's group in this process


def _of_caller(torch: Any) -> Group | None:
    global _runs
    dist = torch.distributed
    if dist.get_world_size() == 1:
        return None
    _runs += 1
    store = dist.PrefixStore(f"penstock/own/run-{_runs}",
                             dist.distributed_c10d._get_default_store())
    place = {"rank": dist.get_rank(), "world": dist.get_world_size(),
             "local_rank": int(os.environ.get("LOCAL_RANK", "0")),
             "launcher": "torch.distributed", "store_is_served": True,
             "master": os.environ.get("MASTER_ADDR", "127.0.0.1")}
    return Group(torch, store, place, str(dist.get_backend()), ours=False)


class Group:
    """The ranks of one run. Used by one thread."""

    def __init__(self, torch: Any, store: Any, place: dict[str, Any],
                 backend: str, ours: bool = True) -> None:
        self._torch, self._dist, self._store = torch, torch.distributed, store
        self.rank, self.world = int(place["rank"]), int(place["world"])
        self.local_rank = int(place["local_rank"])
        self.launcher, self.backend = str(place["launcher"]), backend
        self._serves = self.rank == 0 and not place["store_is_served"]
        self._ours = ours
        self.hosts: list[str] = []
        self._failure = b""
        self._gone: list[int] = []  # the ranks whose processes ended first
        self._ended = threading.Event()
        self._failed_here = False
        self._heard = False  # that another rank has ended
        self._waits = 0  # calls of the main thread that may wait for others
        with self._talking("finding the other ranks"):
            # Messages on the host, apart from what the training sums.
            self._messages = self._dist.new_group(
                backend="gloo", timeout=_LONGEST_STEP)
        self.hosts = [text.decode() for text in
                      self.gather(socket.gethostname().encode())]
        self._lifelines = _engine.RankLifelines(
            self.rank, self.world, str(place["master"]), self.gather)
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    # -- messages

    def gather(self, mine: bytes) -> list[bytes]:
        """The bytes of all ranks, in their order."""
        torch = self._torch
        with self._talking("exchanging messages"):
            lengths = [int(each) for each in self._gathered(
                torch.tensor([len(mine)]))]
            row = torch.zeros(max(1, *lengths), dtype=torch.uint8)
            if mine:
                row[:len(mine)] = torch.frombuffer(bytearray(mine),
                                                   dtype=torch.uint8)
            return [each.numpy().tobytes()[:length] for each, length
                    in zip(self._gathered(row), lengths)]

    def exchange(self, mine: bytes) -> list[bytes]:
        """gather() of bytes that are as many on each rank."""
        torch = self._torch
        with self._talking("voting on a step"):
            row = torch.frombuffer(bytearray(mine), dtype=torch.uint8)
            return [each.numpy().tobytes() for each in self._gathered(row)]

    def _gathered(self, row: Any) -> list[Any]:
        of_all = [self._torch.empty_like(row) for _ in range(self.world)]
        self._dist.all_gather(of_all, row, group=self._messages)
        return of_all

    def add_up(self, arrays: Sequence[Any]) -> None:
        """Replaces arrays of numpy by their sums over the ranks."""
        with self._talking("adding numbers over the ranks"):
            for array in arrays:
                self._dist.all_reduce(self._torch.from_numpy(array),
                                      group=self._messages)

    def copy_from_first(self, arrays: Sequence[Any]) -> None:
        """Replaces arrays of numpy by those of rank 0."""
        with self._talking("copying numbers from rank 0"):
            for array in arrays:
                self._dist.broadcast(self._torch.from_numpy(array), 0,
                                     group=self._messages)

    def share(self, mine: Any) -> list[Any]:
        """What each rank gives: tensors, numbers and lists of them."""
        return [unpacked(self._torch, each)
                for each in self.gather(packed(self._torch, mine))]

    def check_same(self, weights: Iterable[bytes]) -> None:
        """Raises DeviceError where a rank has other bytes than rank 0."""
        mine = hashlib.sha256()
        for data in weights:
            mine.update(data)
        all_of_them = self.gather(mine.hexdigest().encode())
        for rank, other in enumerate(all_of_them):
            if other != all_of_them[0]:
                raise worded(
                    DeviceError, "ranks.differ",
                    "the ranks do not hold the same weights",
                    f"rank {rank} on {self.hosts[rank]}",
                    f"the SHA-256 of its weights is {other.decode()}, that of "
                    f"rank 0 {all_of_them[0].decode()}",
                    "check the memory of that machine ('penstock doctor'), "
                    "then start all ranks again with --resume latest")

    # -- tensors, where they are

    def sum(self, tensor: Any) -> Any:
        """Replaces it by its sum over the ranks."""
        self._dist.all_reduce(tensor)
        return tensor

    def take_from_first(self, tensors: Sequence[Any]) -> None:
        """Replaces them by those of rank 0."""
        with self._torch.no_grad():
            for tensor in tensors:
                self._dist.broadcast(tensor, 0)

    # -- the end

    def report(self, failure: str) -> None:
        """Tells the other ranks why this one ends. The first report is kept. Of
        what has happened to another rank each hears by itself."""
        if self._heard:
            return
        self._failed_here = True
        self._store.set_timeout(datetime.timedelta(seconds=_SURVIVORS_S))
        self._store.compare_set("failure", "", failure)

    def leave(self) -> None:
        """The end, for all ranks together; waits a few seconds at most. Rank 0,
        which may serve the store, goes last, and after a failure not before the
        others have heard of it."""
        self._ended.set()
        if not self._failed_here and not self._heard:
            self._lifelines.leave()
        # A thread in the store must not outlive the interpreter.
        self._watcher.join(_LEAVE_S)
        try:
            self._store.set_timeout(datetime.timedelta(seconds=_LEAVE_S))
            self._store.add("left", 1)
            until = time.monotonic() + _LEAVE_S
            while self._serves and time.monotonic() < until and \
                    self._store.add("left", 0) < self.world:
                others = self.world - 1 - len(self._gone)
                if (self._failed_here or self._gone) and \
                        self._store.add("heard", 0) >= others:
                    break
                time.sleep(_ASK_AGAIN_S)
        except RuntimeError as error:
            logging.getLogger("penstock").debug(
                "leaving the other ranks: %s", _first_line(error))
        # After a loss that could wait for a call in which gloo is stuck.
        if self._heard and end_at_once():
            return
        if self._ours and self._dist.is_initialized():
            self._dist.destroy_process_group()

    # -- what has happened to the others

    @contextlib.contextmanager
    def _talking(self, doing: str) -> Iterator[None]:
        self._waits += 1
        try:
            yield
        except Error:
            raise
        except Exception as error:
            self._refuse_lost(doing, error)
        finally:
            self._waits -= 1

    @contextlib.contextmanager
    def hearing(self, doing: str) -> Iterator[None]:
        """Code of the user's that speaks with the other ranks, too: what comes
        from a connection is told as such."""
        self._waits += 1
        try:
            yield
        except Error as error:
            if error.code.startswith("ranks.") or error.__cause__ is None or \
                    not _OF_CONNECTIONS.search(str(error.__cause__)):
                raise
            self._refuse_lost(doing, error.__cause__)
        except Exception as error:
            if not _OF_CONNECTIONS.search(str(error)):
                raise
            self._refuse_lost(doing, error)
        finally:
            self._waits -= 1

    def _watch(self) -> None:
        """Keeps what has happened to another rank, before the store is gone;
        ends a process that waits in vain for a rank that has ended."""
        clone = getattr(self._store, "clone", None)
        store: Any = self._store
        since = None
        while not self._ended.wait(_WATCH_S):
            gone = self._lifelines.gone()
            if store is not None:
                try:
                    store = clone() if clone is not None else store
                    clone = None
                    self._keep_news(store, gone)
                except Exception:
                    store = None  # a call of the run will notice
            self._gone = self._gone or gone
            bad_news = self._gone or (self._failure and not self._failed_here)
            # What follows on what was heard has time limits of its own.
            if not bad_news or self._waits <= 0 or self._heard:
                since = None
            elif since is None:
                since = time.monotonic()
            elif time.monotonic() - since > _NOTICE_S:
                self._leave_at_once()

    def _keep_news(self, store: Any, gone: list[int]) -> None:
        if self._failure or self._gone:
            return
        if store.check(["failure"]):
            self._failure = bytes(store.get("failure"))
        elif store.check(["gone"]):
            self._gone = [int(each) for each in store.get("gone").split(b",")]
        elif self.rank == 0 and gone:
            self._gone = gone
            store.set("gone", ",".join(str(rank) for rank in gone))
            return
        else:
            return
        if not self._failed_here:
            store.add("heard", 1)

    def _leave_at_once(self) -> NoReturn:
        """A rank has gone or failed, and gloo has not noticed: the call that
        waits for it would do so until gloo's timeout, and cannot be
        interrupted."""
        try:
            self._refuse("waiting for the others", self._named(self._gone),
                         "its process has ended", None)
        except Error as error:
            end_now(error)

    def _refuse_lost(self, doing: str, error: BaseException) -> NoReturn:
        self._heard = True
        missing = f"{self._named([0])}, which served the store"
        if not self._failure and not self._gone:
            try:
                self._store.set_timeout(
                    datetime.timedelta(seconds=_SURVIVORS_S))
                missing = self._named(self._wait_for_news()) or \
                    "a connection between the ranks"
            except RuntimeError as gone:
                logging.getLogger("penstock").debug(
                    "the store of the ranks: %s", _first_line(gone))
        self._refuse(doing, self._named(self._gone) or missing,
                     _first_line(error), error)

    def _refuse(self, doing: str, where: str, why: str,
                cause: BaseException | None) -> NoReturn:
        if self._failure:
            _engine.refuse_failure(self._failure.decode())
        raise worded(
            DeviceError, "ranks.lost", f"lost another rank while {doing}",
            where, why, "look at what that rank printed last; then start all "
            "ranks again with --resume latest") from cause

    def _wait_for_news(self) -> list[int]:
        """Enters this rank in the list of survivors, and waits until the list
        is full, it is known what has happened, or a moment is over; the ranks
        that are not in the list."""
        self._store.add(f"survivor/{self.rank}", 1)
        until = time.monotonic() + _SURVIVORS_S
        while True:
            if not self._failure and self._store.check(["failure"]):
                self._failure = bytes(self._store.get("failure"))
            missing = [rank for rank in range(self.world)
                       if not self._store.check([f"survivor/{rank}"])]
            if self._failure or self._gone or not missing or \
                    time.monotonic() > until:
                return missing
            time.sleep(_ASK_AGAIN_S)

    def _named(self, ranks: Iterable[int]) -> str:
        return ", ".join(f"rank {rank}{self._host_of(rank)}" for rank in ranks)

    def _host_of(self, rank: int) -> str:
        return f" on {self.hosts[rank]}" if rank < len(self.hosts) else ""


def _first_line(error: BaseException) -> str:
    text = str(error).strip().split("\n")[0]
    return text or type(error).__name__
