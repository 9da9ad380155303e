"""The loop of one helper process."""
import collections
import select
import socket
import struct
import time

from .board import Board
from .collate import stack_without_shared_memory, torch_module
from .carried import Carried
from .fetching import Fetcher, Stream, count_of, detail_of, seed_generators
from .memory import Reader, Writer
from .packing import Letter, open_ref, ref_of, seal

# Helper to loop: round, batch, kind, seconds of work, items; then a letter.
RESULT = struct.Struct("<qqqdq")
BATCH, ERROR, END = range(3)
MOST_BYTES = 1 << 17  # of a message

WorkerInfo = collections.namedtuple(
    "WorkerInfo", "id num_workers seed dataset")
info = None  # of this process, when it is a helper

Seat = collections.namedtuple(
    "Seat", "worker workers own shared board memories post")


class Task(collections.namedtuple(
        "Task", "round batch ids part parts first_row grain key kind")):
    """What a helper is asked for: FETCH the batch of these ids (or a part of
    it), take the NEXT batch of a stream, SKIP it, or RESTART its stream."""
    FETCH, NEXT, SKIP, RESTART = range(4)


class Worker:
    def __init__(self, seat, dataset, collate_fn, settings):
        self._seat = seat
        self._own, self._shared = seat.own, seat.shared
        self._writer = Writer(seat.memories[seat.worker])
        self._memories = {}
        self._post = Reader(seat.post)
        self._board = Board(seat.board)
        self._dataset, self._collate_fn = dataset, collate_fn
        self._settings, self._settings.in_helper = settings, True
        self._stream = self._fetcher = self._broken = None
        self._seconds, self._items = 0.0, 0

    def prepare(self, base_seed, worker_init_fn, iterable):
        """Seeds, get_worker_info and the user's worker_init_fn."""
        self._iterable = iterable
        self._name_self(base_seed + self._seat.worker)
        seed_worker(base_seed, self._seat.worker)
        try:
            if worker_init_fn is not None:
                worker_init_fn(self._seat.worker)
            self._make_fetcher()
        except Exception as error:
            self._broken = Carried(error, self._where(), "worker_init_fn")

    def _make_fetcher(self):
        if self._iterable:
            self._stream = Stream(self._dataset, self._collate_fn,
                                  self._settings)
        else:
            self._fetcher = Fetcher(self._dataset, self._collate_fn,
                                    self._settings)

    def _name_self(self, seed):
        global info
        info = WorkerInfo(self._seat.worker, self._seat.workers, seed,
                          self._dataset)
        self._torch_knows = False
        self._tell_torch()

    def _tell_torch(self):
        """torch.utils.data.get_worker_info() answers, once torch is here."""
        torch = torch_module()
        if torch is None or self._torch_knows:
            return
        theirs = torch.utils.data._utils.worker
        theirs._worker_info = theirs.WorkerInfo(**info._asdict())
        stack_without_shared_memory()
        torch.set_num_threads(1)
        self._torch_knows = True

    def run(self):
        """Serves until the loop closes the connection."""
        try:
            self._run()
        except (BrokenPipeError, ConnectionResetError):
            pass  # it closed while an answer was on its way

    def _run(self):
        waiting = select.poll()
        waiting.register(self._own, select.POLLIN)
        waiting.register(self._shared, select.POLLIN)
        sockets = {s.fileno(): s for s in (self._own, self._shared)}
        while True:
            ready = dict(waiting.poll())
            for fd in sorted(ready, key=lambda fd: fd != self._own.fileno()):
                try:
                    message = sockets[fd].recv(MOST_BYTES,
                                               socket.MSG_DONTWAIT)
                except BlockingIOError:
                    continue  # another helper was faster
                if not message:
                    return
                self._serve(Letter(message, self._post).open_copy())
                break

    def _serve(self, task):
        task = Task(*task)
        self._tell_torch()
        if task.round != self._board.round:
            return  # the loop began anew since
        began = time.perf_counter()
        kind, result = BATCH, None
        try:
            if task.kind == Task.RESTART:
                if self._broken is None:
                    self._make_fetcher()
                return
            if self._broken is not None:
                raise _Broken
            kind, result = self._result_of(task)
            letter = None if kind is None else self._sealed(result)
        except _Broken:
            kind, letter = ERROR, seal(self._broken, self._writer)
        except Exception as error:
            kind, letter = ERROR, seal(
                Carried(error, self._where(), detail_of(error)), self._writer)
        finally:
            self._seconds += time.perf_counter() - began
        if kind is not None:
            self._send(task, kind, letter)

    def _sealed(self, result):
        try:
            return seal(result, self._writer)
        except MemoryError:
            raise
        except Exception as error:
            error._penstock_detail = "the batch cannot be pickled"
            raise

    def _send(self, task, kind, letter):
        self._own.send(RESULT.pack(task.round, task.batch, kind,
                                   self._seconds, self._items) + letter)
        self._seconds, self._items = 0.0, 0

    def _result_of(self, task):
        """(kind, object), kind None when there is nothing to send yet."""
        if task.kind in (Task.NEXT, Task.SKIP):
            skip = task.kind == Task.SKIP
            try:
                batch = self._stream.batch(task.ids, skip)
            except StopIteration:
                return END, None
            self._items += task.ids or 1
            return BATCH, (batch, ())
        if task.parts == 1:
            batch = self._fetcher.batch(task.ids, task.key, task.grain)
            self._items += (count_of(task.ids) if self._settings.batched
                            else 1)
            return BATCH, batch
        return self._part_of(task)

    def _part_of(self, task):
        try:
            piece = self._fetcher.items(task.ids, task.key, task.grain,
                                        task.first_row)
            self._items += len(task.ids)
        except Exception as error:
            piece = Carried(error, self._where(), detail_of(error))
        piece = (task.ids, piece)
        letter = seal(piece, self._writer, inline=0)
        ref = ref_of(letter)
        complete, void = self._board.add(
            task.round, task.batch, task.part, task.parts, self._seat.worker,
            ref)
        for worker, unread in void:
            self._memory(worker).release(unread)
        if complete is None:
            return None, None
        pieces = [open_ref(ref, self._memory(worker))
                  for worker, ref in complete]
        ids, items, bad = [], [], []
        for some, piece in pieces:
            if isinstance(piece, Carried):
                return ERROR, piece
            ids += some
            items += piece[0]
            bad += piece[1]
        return BATCH, (self._fetcher.collated(items, bad, ids, task.key), bad)

    def _memory(self, worker):
        if worker not in self._memories:
            self._memories[worker] = Reader(self._seat.memories[worker])
        return self._memories[worker]

    def _where(self):
        return f"DataLoader worker process {self._seat.worker}"


class _Broken(Exception):
    """worker_init_fn failed; every task is answered by its error."""


def seed_worker(base_seed, worker):
    """Python, numpy and torch, as torch seeds its own workers."""
    torch = torch_module()
    numpy_seed = None
    if torch is not None:
        state = torch.utils.data._utils.worker._generate_state
        numpy_seed = state(base_seed, worker)
    seed_generators(base_seed + worker, numpy_seed)


def task_letter(task, writer):
    """A task as a letter for a helper."""
    return seal(tuple(task), writer)
