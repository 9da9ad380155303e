"""The HTTP/1.1 connection, with the deadlines that uvicorn does not have.

A request must arrive within `ARRIVAL_S`, its body included, and what is
answered must be taken: a connection whose reader takes nothing for `TAKEN_S` is
closed. Otherwise a thousand half-sent headers would be held for ever.
"""

from __future__ import annotations

import asyncio
import functools
import socket
import struct
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .tokens import peer_uid

ARRIVAL_S = 10.0
TAKEN_S = 12.0
MOST_CONNECTIONS = 2000


class Protocol(H11Protocol):  # type: ignore[misc]
    """One connection."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._arrives: asyncio.TimerHandle | None = None
        self._taken: asyncio.TimerHandle | None = None
        # Little is kept for a reader that does not read.
        transport.set_write_buffer_limits(high=32 << 10)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
            return
        connection = transport.get_extra_info("socket")
        peer = {"uid": functools.partial(peer_uid, connection),
                "unix": not isinstance(connection.getsockname(), tuple)}
        app = self.app

        async def with_peer(scope: dict[str, Any], *args: Any) -> None:
            await app({**scope, "penstock.peer": peer}, *args)

        self.app = with_peer
        self._await_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self.conn.their_state in (h11.DONE, h11.MUST_CLOSE, h11.CLOSED):
            self._cancel("_arrives")
        else:
            self._await_request()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing() and (
                self.conn.their_state in (h11.IDLE, h11.SEND_BODY)):
            self._await_request()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._taken = self.loop.call_later(TAKEN_S, self._drop)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._cancel("_taken")

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel("_arrives")
        self._cancel("_taken")
        super().connection_lost(exc)

    def _await_request(self) -> None:
        """Nothing is added to a deadline by what arrives before it."""
        if self._arrives is None:
            self._arrives = self.loop.call_later(ARRIVAL_S, self._drop)

    def _drop(self) -> None:
        """Closes the connection, and lets the kernel keep nothing for it."""
        connection = self.transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                  struct.pack("ii", 1, 0))
        self.transport.abort()

    def _cancel(self, name: str) -> None:
        timer = getattr(self, name)
        if timer is not None:
            timer.cancel()
            setattr(self, name, None)
