"""What happens to a job, as server-sent events.

A listener has a place: how many states and epochs it has heard, written as the
event's id "STATES.EPOCHS", so that `Last-Event-ID` is all that is needed to go
on. Each job that someone listens to is looked at by one task, which publishes a
whole picture; a listener takes from the newest picture what it lacks. So
nothing is queued for a slow reader.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
from typing import Any, AsyncIterator, Callable

from .failure import Failure
from .store import ENDED

_LOOK_S = 0.5
_QUIET_S = 10.0  # a comment shows that the connection lives
MOST_LISTENERS = 1000


@dataclasses.dataclass(frozen=True)
class Picture:
    """A job at some moment."""

    states: list[dict[str, Any]]
    epochs: list[dict[str, float]]
    progress: dict[str, Any] | None
    verdict: dict[str, Any] | None

    def ended(self) -> bool:
        return not self.states or self.states[-1]["status"] in ENDED


class _Feed:
    """The newest picture of a job, for its listeners."""

    def __init__(self) -> None:
        self.picture: Picture | None = None
        self.changed = asyncio.Event()
        self.listeners = 0
        self.task: asyncio.Task[None] | None = None


class Events:
    """All feeds. Used on the loop's thread."""

    def __init__(self, look: Callable[[str], Picture]) -> None:
        self._look = look  # called in a thread
        self._feeds: dict[str, _Feed] = {}
        self._listeners = 0
        self.closing = False

    def close(self) -> None:
        """Ends what listeners hear, so that the service can stop."""
        self.closing = True
        for feed in self._feeds.values():
            feed.changed.set()

    async def listen(self, job_id: str, last_id: str) -> AsyncIterator[bytes]:
        """The events after `last_id`, until the job has ended."""
        if self._listeners >= MOST_LISTENERS:
            raise Failure(429, "service.listeners", "cannot send events",
                          job_id, f"{MOST_LISTENERS} listeners are connected",
                          "close some, or ask again later")
        return self._events(job_id, _place_in(last_id))

    async def _events(self, job_id: str, place: tuple[int, int]
                      ) -> AsyncIterator[bytes]:
        feed = self._joined(job_id)
        told: dict[str, Any] = {}
        try:
            while not self.closing:
                changed, picture = feed.changed, feed.picture
                if picture is not None:
                    place, events = _difference(picture, place, told)
                    for event in events:
                        yield event
                    if picture.ended():
                        return
                if feed.picture is not picture:
                    continue
                try:
                    await asyncio.wait_for(changed.wait(), _QUIET_S)
                except asyncio.TimeoutError:
                    yield b": still here\n\n"
        finally:
            self._left(job_id, feed)

    def _joined(self, job_id: str) -> _Feed:
        feed = self._feeds.get(job_id)
        if feed is None:
            feed = self._feeds[job_id] = _Feed()
            feed.task = asyncio.get_running_loop().create_task(
                self._watch(job_id, feed))
        feed.listeners += 1
        self._listeners += 1
        return feed

    def _left(self, job_id: str, feed: _Feed) -> None:
        self._listeners -= 1
        feed.listeners -= 1
        if feed.listeners == 0:
            self._feeds.pop(job_id, None)
            if feed.task is not None:
                feed.task.cancel()

    async def _watch(self, job_id: str, feed: _Feed) -> None:
        while not self.closing:
            picture = await asyncio.to_thread(self._look, job_id)
            if picture != feed.picture:
                feed.picture = picture
                changed, feed.changed = feed.changed, asyncio.Event()
                changed.set()
            if picture.ended():
                return
            await asyncio.sleep(_LOOK_S)


def _place_in(last_id: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,9})\.(\d{1,9})", last_id)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _difference(picture: Picture, place: tuple[int, int], told: dict[str, Any]
                ) -> tuple[tuple[int, int], list[bytes]]:
    """The place after these events, and what a listener at `place` lacks."""
    states, epochs = place
    # A job that was started again has fewer epochs than before.
    epochs = min(epochs, len(picture.epochs))
    events = []
    for row in picture.epochs[epochs:]:
        epochs += 1
        events.append(_event("epoch", row, (states, epochs)))
    for kind, value in (("progress", picture.progress),
                        ("verdict", picture.verdict)):
        if value is not None and told.get(kind) != value:
            told[kind] = value
            events.append(_event(kind, value, (states, epochs)))
    for state in picture.states[states:]:
        states += 1
        events.append(_event("state", state, (states, epochs)))
    return (states, epochs), events


def _event(kind: str, data: Any, place: tuple[int, int]) -> bytes:
    return (f"id: {place[0]}.{place[1]}\nevent: {kind}\n"
            f"data: {json.dumps(data)}\n\n").encode()
