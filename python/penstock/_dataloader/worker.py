"""The loop of one worker process."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from .assembly_table import AssemblyTable
from .collate import stack_without_shared_memory, torch_module
from .fetching import (Fetcher, Seeds, Settings, Stream, count_of, detail_of,
                       note_detail, seed_generators)
from .looks import Looks
from .memory import Reader, Ref, Writer, give_back_freed
from .packing import Message, open_ref, ref_of, seal
from .preloading import NewModules
from .remote_error import RemoteError

# Worker to loop: a Result up to `items`; then a message.
RESULT = struct.Struct("<qqqdddddq")
BATCH, ERROR, END, WHOLE, READY = range(5)
MOST_BYTES = 1 << 17  # of a message
IDLE_MS = 100         # without a task: then others may have the memory


class WorkerInfo(NamedTuple):
    """What get_worker_info() gives in a worker."""
    id: int
    num_workers: int
    seed: int
    dataset: Any


info: WorkerInfo | None = None  # of this process, when it is a worker


class WorkerChannel(NamedTuple):
    """Which worker of how many, and the descriptors that are open for it: its
    own tasks, those for any worker that is free, the assembly table, memories
    of all workers, and the memory in which large tasks are."""
    worker: int
    workers: int
    own: int
    shared: int
    assembly_table: int
    memories: list[int]
    post: int


class Job(NamedTuple):
    """What all workers of a loop do; `depth` batches are fetched ahead."""
    base_seed: int
    iterable: bool
    settings: Settings
    depth: int


FETCH, NEXT, SKIP, RESTART = range(4)


class Task(NamedTuple):
    """What a worker is asked for: FETCH the batch of these ids (or a part of
    it), take the NEXT batch of a stream, SKIP it, or RESTART its stream."""
    round: int
    batch: int
    ids: Any
    part: int
    parts: int
    first_row: int
    grain: int
    seeds: Seeds | None
    kind: int


class Result(NamedTuple):
    """What comes of a task: BATCH, ERROR, END of a stream, or WHOLE: its items
    cannot be sent, so one worker has to fetch them all. READY, before all
    others, comes of none. Of the `seconds` of work, `cpu_s` were on a processor;
    `looked_s`, `ran_s` and `queued_s` are those of Looks.take(). The pool that
    handed it out opens `message`."""
    round: int
    batch: int
    kind: int
    seconds: float
    cpu_s: float
    looked_s: float
    ran_s: float
    queued_s: float
    items: int
    message: Any
    worker: int


class Worker:
    def __init__(self, channel: WorkerChannel, dataset: Any,
                 collate_fn: Callable[[Any], Any] | None,
                 settings: Settings, modules: NewModules) -> None:
        self._channel, self._modules = channel, modules
        self._own = socket.socket(fileno=channel.own)
        self._shared = socket.socket(fileno=channel.shared)
        self._writer = Writer(channel.memories[channel.worker])
        self._memories: dict[int, Reader] = {}
        self._post = Reader(channel.post)
        self._assembly = AssemblyTable(channel.assembly_table)
        self._dataset, self._collate_fn = dataset, collate_fn
        self._settings, self._settings.in_worker = settings, True
        self._broken: RemoteError | None = None     # for good
        self._not_begun: RemoteError | None = None  # this epoch
        self._seconds, self._cpu_s, self._items = 0.0, 0.0, 0
        self._looks = Looks()

    def prepare(self, base_seed: int,
                worker_init_fn: Callable[[int], Any] | None,
                iterable: bool) -> None:
        """Seeds, get_worker_info and the user's worker_init_fn."""
        self._iterable = iterable
        self._name_self(base_seed + self._channel.worker)
        seed_worker(base_seed, self._channel.worker)
        try:
            if worker_init_fn is not None:
                worker_init_fn(self._channel.worker)
        except Exception as error:
            self._broken = RemoteError(error, self._where(), "worker_init_fn")
        else:
            self._begin()

    def _begin(self) -> None:
        self._not_begun = None
        given = self._dataset, self._collate_fn, self._settings
        try:
            if self._iterable:
                self._stream = Stream(*given)
            else:
                self._fetcher = Fetcher(*given)
        except Exception as error:
            self._not_begun = RemoteError(error, self._where(),
                                      beginning(self._iterable))

    def _name_self(self, seed: int) -> None:
        global info
        info = WorkerInfo(self._channel.worker, self._channel.workers, seed,
                          self._dataset)
        self._torch_knows = False
        self._tell_torch()

    def _tell_torch(self) -> None:
        """torch.utils.data.get_worker_info() answers, once torch is here."""
        torch = torch_module()
        if torch is None or self._torch_knows or info is None:
            return
        theirs = torch.utils.data._utils.worker
        theirs._worker_info = theirs.WorkerInfo(**info._asdict())
        stack_without_shared_memory()
        torch.set_num_threads(1)
        self._torch_knows = True

    def run(self) -> None:
        """Serves until the loop closes the connection."""
        try:
            self._run()
        except (BrokenPipeError, ConnectionResetError):
            pass  # it closed while an answer was on its way

    def _run(self) -> None:
        self._own.send(RESULT.pack(-1, -1, READY, 0, 0, 0, 0, 0, 0))
        waiting = select.poll()
        waiting.register(self._own, select.POLLIN)
        waiting.register(self._shared, select.POLLIN)
        sockets = {s.fileno(): s for s in (self._own, self._shared)}
        first_pause = True
        while True:
            ready = dict(waiting.poll(IDLE_MS))
            if not ready:
                give_back_freed()
                if first_pause:  # later ones are a loop's that takes its time
                    self._writer.give_back()
                    first_pause = False
                ready = dict(waiting.poll())
            for fd in sorted(ready, key=lambda fd: fd != self._own.fileno()):
                try:
                    raw = sockets[fd].recv(MOST_BYTES,
                                               socket.MSG_DONTWAIT)
                except BlockingIOError:
                    continue  # another worker was faster
                if not raw:
                    return
                self._serve(Task(*Message(raw, self._post).open_copy()))
                self._modules.tell()
                break

    def _serve(self, task: Task) -> None:
        self._tell_torch()
        if task.round != self._assembly.round:
            return  # the loop has begun again
        self._looks.begin()
        began, cpu = time.perf_counter(), time.process_time()
        kind: int | None
        message: bytes | None
        try:
            if task.kind == RESTART:
                if self._broken is None:
                    self._begin()
                return
            if broken := self._broken or self._not_begun:
                kind, result = ERROR, broken
            else:
                kind, result = self._result_of(task)
            message = None if kind is None else self._sealed(result)
        except Exception as error:
            kind, message = ERROR, seal(
                RemoteError(error, self._where(), detail_of(error)),
                self._writer)
        finally:
            self._seconds += time.perf_counter() - began
            self._cpu_s += time.process_time() - cpu
            self._looks.end()
        if kind is not None and message is not None:
            self._send(task, kind, message)

    def _sealed(self, result: Any) -> bytes:
        try:
            return seal(result, self._writer)
        except MemoryError:
            raise
        except Exception as error:
            note_detail(error, "the batch cannot be pickled")
            raise

    def _send(self, task: Task, kind: int, message: bytes) -> None:
        self._own.send(RESULT.pack(task.round, task.batch, kind,
                                   self._seconds, self._cpu_s,
                                   *self._looks.take(),
                                   self._items) + message)
        self._seconds, self._cpu_s, self._items = 0.0, 0.0, 0

    def _result_of(self, task: Task) -> tuple[int | None, Any]:
        """(kind, object), kind None when there is nothing to send yet."""
        if task.kind in (NEXT, SKIP):
            try:
                batch = self._stream.batch(task.ids, task.kind == SKIP)
            except StopIteration:
                return END, None
            self._items += task.ids or 1
            return BATCH, (batch, ())
        if task.parts == 1:
            batch = self._fetcher.batch(task.ids, task.seeds, task.grain)
            self._items += (count_of(task.ids) if self._settings.batched
                            else 1)
            return BATCH, batch
        return self._part_of(task)

    def _part_of(self, task: Task) -> tuple[int | None, Any]:
        piece: Any
        try:
            piece = self._fetcher.items(task.ids, task.seeds, task.grain,
                                        task.first_row)
            self._items += len(task.ids)
        except Exception as error:
            piece = RemoteError(error, self._where(), detail_of(error))
        try:
            message = seal((task.ids, piece), self._writer, inline=0)
        except Exception:  # stored all the same: others wait for it
            message = seal((task.ids, None), self._writer, inline=0)
        ref = ref_of(message)
        complete, void = self._assembly.add(
            task.round, task.batch, task.part, task.parts,
            self._channel.worker, ref)
        for worker, unread in void:
            self._memory(worker).release(unread)
        if complete is None:
            return None, None
        pieces = [self._opened(worker, ref) for worker, ref in complete]
        ids: list[Any] = []
        items: list[Any] = []
        bad: list[Any] = []
        for some, piece in pieces:
            if isinstance(piece, RemoteError):
                return ERROR, piece
            if piece is None:
                return WHOLE, None
            ids += some
            items += piece[0]
            bad += piece[1]
        batch = self._fetcher.collated(items, bad, ids, task.seeds)
        return BATCH, (batch, bad)

    def _opened(self, worker: int, ref: Ref) -> Any:
        try:
            return open_ref(ref, self._memory(worker))
        except Exception:
            return (), None

    def _memory(self, worker: int) -> Reader:
        if worker not in self._memories:
            self._memories[worker] = Reader(self._channel.memories[worker])
        return self._memories[worker]

    def _where(self) -> str:
        return f"DataLoader worker process {self._channel.worker}"


def beginning(iterable: bool) -> str:
    """What was done when an epoch did not begin."""
    return "iter(dataset)" if iterable else "looking at the data set"


def seed_worker(base_seed: int, worker: int) -> None:
    """Python, numpy and torch, as torch seeds its own workers."""
    torch = torch_module()
    numpy_seed = None
    if torch is not None:
        state = torch.utils.data._utils.worker._generate_state
        numpy_seed = state(base_seed, worker)
    seed_generators(base_seed + worker, numpy_seed)


def task_message(task: Task, writer: Writer) -> bytes:
    """A task as a message for a worker."""
    return seal(tuple(task), writer)
