"""A pool of threads, for a data set that releases the interpreter's lock."""

from __future__ import annotations

import collections
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from .looks import Looks
from .remote_error import RemoteError
from .fetching import Fetcher, Stream, count_of, detail_of
from .worker import (BATCH, END, ERROR, FETCH, NEXT, RESTART, SKIP, Job,
                     Result, Task, WorkerInfo, beginning)

# How long close() waits for items on their way; their threads end later.
PATIENCE_S = 5.0

_here = threading.local()


def info() -> WorkerInfo | None:
    """WorkerInfo of this thread, when it is a worker."""
    return getattr(_here, "info", None)


class ThreadResult:
    """A finished result, as a ProcessPool's message."""

    def __init__(self, result: Any) -> None:
        self.result = result

    def discard(self) -> None:
        self.result = None


class ThreadPool:
    """The same interface as ProcessPool. Threads share the data set, so the
    generators of the process are left alone."""

    def __init__(self, dataset: Any, collate_fn: Callable[[Any], Any] | None,
                 worker_init_fn: Callable[[int], Any] | None, workers: int,
                 job: Job) -> None:
        self.size = workers
        self.answered = True  # threads begin at once
        self._job, self._init = job, worker_init_fn
        self._dataset, self._collate_fn = dataset, collate_fn
        self._round, self._closed = 0, False
        self._lock = threading.Condition()
        self._shared: collections.deque[Task] = collections.deque()
        self._own: list[collections.deque[Task]] = [
            collections.deque() for _ in range(workers)]
        # (round, batch) -> part -> its ids, and its items or what was raised
        self._parts: dict[tuple[int, int], dict[int, tuple[Any, Any]]] = {}
        self._results: queue.SimpleQueue[Result] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, args=(worker,), daemon=True,
                             name=f"penstock-items-{worker}")
            for worker in range(workers)]
        for thread in self._threads:
            thread.start()

    def start_round(self, number: int) -> None:
        with self._lock:
            self._round = number
            self._parts.clear()
            for tasks in (self._shared, *self._own):
                tasks.clear()

    def put(self, task: Task, worker: int | None = None) -> None:
        with self._lock:
            (self._shared if worker is None else self._own[worker]).append(
                task)
            self._lock.notify_all()

    def receive(self, deadline: float | None = None) -> Result | None:
        wait = (None if deadline is None
                else max(0.0, deadline - time.monotonic()))
        try:
            return self._results.get(timeout=wait)
        except queue.Empty:
            return None

    def open(self, message: ThreadResult) -> Any:
        result, message.result = message.result, None
        return result

    def waits_for_lock(self, worker: int) -> bool | None:
        """Not known: to look takes Python's own lock from them."""
        return None

    def pids(self) -> list[int]:
        return [os.getpid()]

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._lock.notify_all()
        deadline = time.monotonic() + PATIENCE_S  # for all of them
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, deadline - time.monotonic()))

    def _next_task(self, worker: int) -> Task | None:
        with self._lock:
            while not self._closed:
                for tasks in (self._own[worker], self._shared):
                    if tasks:
                        return tasks.popleft()
                self._lock.wait()
        return None

    def _run(self, worker: int) -> None:
        where = f"DataLoader worker thread {worker}"
        _here.info = WorkerInfo(worker, self.size,
                                self._job.base_seed + worker,
                                self._dataset)
        kind: int | None
        fetcher, broken, not_begun = None, None, None
        looks = Looks()
        try:
            if self._init is not None:
                self._init(worker)
        except BaseException as error:
            broken = RemoteError(error, where, "worker_init_fn")
        else:
            fetcher, not_begun = self._begun(where)
        while (task := self._next_task(worker)) is not None:
            if task.round != self._round:
                continue
            if task.kind == RESTART:
                if broken is None:
                    fetcher, not_begun = self._begun(where)
                continue
            looks.begin()
            began = time.perf_counter()
            try:
                kind, result = (
                    (ERROR, broken or not_begun) if broken or not_begun
                    else self._result_of(fetcher, task, where))
            except BaseException as error:
                kind, result = ERROR, RemoteError(error, where,
                                                  detail_of(error))
            seconds = time.perf_counter() - began
            looks.end()
            items = (task.ids or 1 if task.kind != FETCH
                     else count_of(task.ids))
            if kind is not None:
                # The loop's process counts their time on processors.
                self._results.put(Result(
                    task.round, task.batch, kind, seconds, 0.0,
                    *looks.take(), items,
                    ThreadResult(result), worker))

    def _begun(self, where: str) -> tuple[Any, RemoteError | None]:
        """What fetches in an epoch, or why it cannot begin."""
        maker = Stream if self._job.iterable else Fetcher
        try:
            return maker(self._dataset, self._collate_fn,
                         self._job.settings), None
        except BaseException as error:
            return None, RemoteError(error, where,
                                 beginning(self._job.iterable))

    def _result_of(self, fetcher: Any, task: Task,
                   where: str) -> tuple[int | None, Any]:
        piece: Any
        if task.kind in (NEXT, SKIP):
            try:
                return BATCH, (fetcher.batch(task.ids, task.kind == SKIP), ())
            except StopIteration:
                return END, None
        if task.parts == 1:
            return BATCH, fetcher.batch(task.ids)
        try:
            piece = fetcher.items(task.ids, first_row=task.first_row)
        except Exception as error:
            piece = RemoteError(error, where, detail_of(error))
        with self._lock:
            pieces = self._parts.setdefault((task.round, task.batch), {})
            pieces[task.part] = task.ids, piece
            if len(pieces) < task.parts:
                return None, None
            self._parts.pop((task.round, task.batch), None)
        ids: list[Any] = []
        items: list[Any] = []
        bad: list[Any] = []
        for _, (some, piece) in sorted(pieces.items()):
            if isinstance(piece, RemoteError):
                return ERROR, piece
            ids += some
            items += piece[0]
            bad += piece[1]
        return BATCH, (fetcher.collated(items, bad, ids), bad)
