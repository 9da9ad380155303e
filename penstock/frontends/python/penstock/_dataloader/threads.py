"""A crew of threads, for a data set that releases the interpreter's lock."""
import collections
import os
import queue
import threading
import time

from .carried import Carried
from .fetching import Fetcher, Stream, count_of, detail_of
from .worker import BATCH, END, ERROR, Task, WorkerInfo

_here = threading.local()


def info():
    """WorkerInfo of this thread, when it is a helper."""
    return getattr(_here, "info", None)


class _Shelf:
    """A finished result, as a ProcessCrew's letter."""

    def __init__(self, result):
        self.result = result

    def discard(self):
        self.result = None


class ThreadCrew:
    """The same face as ProcessCrew. Threads share the data set, so the
    generators of the process are left alone."""

    def __init__(self, dataset, collate_fn, worker_init_fn, workers, job):
        self.size, self.held = workers, ()
        self._job, self._init = job, worker_init_fn
        self._dataset, self._collate_fn = dataset, collate_fn
        self._round, self._closed = 0, False
        self._lock = threading.Condition()
        self._shared = collections.deque()
        self._own = [collections.deque() for _ in range(workers)]
        self._parts = {}  # (round, batch) -> [parts that are there]
        self._results = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, args=(worker,), daemon=True,
                             name=f"penstock-items-{worker}")
            for worker in range(workers)]
        for thread in self._threads:
            thread.start()

    def start_round(self, number):
        with self._lock:
            self._round = number
            self._parts.clear()
            for tasks in (self._shared, *self._own):
                tasks.clear()

    def put(self, task, worker=None):
        with self._lock:
            (self._shared if worker is None else self._own[worker]).append(
                task)
            self._lock.notify_all()

    def receive(self, deadline=None):
        wait = (None if deadline is None
                else max(0.0, deadline - time.monotonic()))
        try:
            return self._results.get(timeout=wait)
        except queue.Empty:
            return None

    def open(self, letter):
        result, letter.result = letter.result, None
        return result

    def pids(self):
        return [os.getpid()]

    def close(self):
        with self._lock:
            self._closed = True
            self._lock.notify_all()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(timeout=5.0)

    def _next_task(self, worker):
        with self._lock:
            while not self._closed:
                for tasks in (self._own[worker], self._shared):
                    if tasks:
                        return tasks.popleft()
                self._lock.wait()
        return None

    def _run(self, worker):
        where = f"DataLoader worker thread {worker}"
        _here.info = WorkerInfo(worker, self.size,
                                self._job["base_seed"] + worker,
                                self._dataset)
        broken = fetcher = None
        try:
            if self._init is not None:
                self._init(worker)
            fetcher = self._fetcher()
        except Exception as error:
            broken = Carried(error, where, "worker_init_fn")
        while (task := self._next_task(worker)) is not None:
            if task.round != self._round:
                continue
            if task.kind == Task.RESTART:
                fetcher = fetcher if broken else self._fetcher()
                continue
            began = time.perf_counter()
            try:
                kind, result = ((ERROR, broken) if broken
                                else self._result_of(fetcher, task, where))
            except BaseException as error:
                kind, result = ERROR, Carried(error, where, detail_of(error))
            seconds = time.perf_counter() - began
            items = (task.ids or 1 if task.kind != Task.FETCH
                     else count_of(task.ids))
            if kind is not None:
                self._results.put((task.round, task.batch, kind, seconds,
                                   items, _Shelf(result), worker))

    def _fetcher(self):
        maker = Stream if self._job["iterable"] else Fetcher
        return maker(self._dataset, self._collate_fn, self._job["settings"])

    def _result_of(self, fetcher, task, where):
        if task.kind in (Task.NEXT, Task.SKIP):
            try:
                skip = task.kind == Task.SKIP
                return BATCH, (fetcher.batch(task.ids, skip), ())
            except StopIteration:
                return END, None
        if task.parts == 1:
            return BATCH, fetcher.batch(task.ids)
        try:
            piece = fetcher.items(task.ids, first_row=task.first_row)
        except Exception as error:
            piece = Carried(error, where, detail_of(error))
        with self._lock:
            pieces = self._parts.setdefault((task.round, task.batch), {})
            pieces[task.part] = task.ids, piece
            if len(pieces) < task.parts:
                return None, None
            self._parts.pop((task.round, task.batch), None)
        ids, items, bad = [], [], []
        for _, (some, piece) in sorted(pieces.items()):
            if isinstance(piece, Carried):
                return ERROR, piece
            ids += some
            items += piece[0]
            bad += piece[1]
        return BATCH, (fetcher.collated(items, bad, ids), bad)
