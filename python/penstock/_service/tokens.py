"""Who asks: tokens, cookies, and processes of the same user."""

from __future__ import annotations

import hashlib
import hmac
import os
import pathlib
import re
import secrets
import socket
import stat
import struct
from typing import Iterable

from ..errors import refused

#: What a role may do: a viewer reads, an operator also changes.
ROLES = ("operator", "viewer")
_COOKIE_OF = b"penstock session cookie"


class Tokens:
    """The tokens of a file: a line "ROLE TOKEN" for each."""

    def __init__(self, by_token: dict[str, str]) -> None:
        self._roles = by_token
        self._cookies = {
            hmac.new(token.encode(), _COOKIE_OF, hashlib.sha256).hexdigest():
            role for token, role in by_token.items()}

    def role_of(self, token: str) -> str | None:
        return _found(token, self._roles.items())

    def role_of_cookie(self, value: str) -> str | None:
        return _found(value, self._cookies.items())

    @staticmethod
    def cookie_for(token: str) -> str:
        """What the page's cookie holds in place of the token."""
        return hmac.new(token.encode(), _COOKIE_OF, hashlib.sha256).hexdigest()

    def first(self, role: str) -> str:
        return next((token for token, of in self._roles.items() if of == role),
                    "")


def _found(given: str, known: Iterable[tuple[str, str]]) -> str | None:
    """Takes as long whatever is given."""
    role = None
    for secret, of in known:
        if hmac.compare_digest(secret.encode(), given.encode(
                "utf-8", "surrogateescape")):
            role = of
    return role


def read(file: pathlib.Path) -> Tokens:
    """Reads a token file, which is written first if it is missing. Raises
    RequestError, service.token_file, for a file that others can read."""
    if not file.exists():
        made = "".join(f"{role} {secrets.token_urlsafe(32)}\n"
                       for role in ROLES)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as written:
            written.write(made)
    try:
        with open(file, encoding="ascii") as opened:
            about = os.fstat(opened.fileno())
            text = opened.read(64 << 10)
    except (OSError, UnicodeDecodeError) as error:
        raise _refused(file, str(error), "name a file that you can read"
                       ) from None
    if about.st_uid not in (os.getuid(), 0) or about.st_mode & (
            stat.S_IRWXG | stat.S_IRWXO):
        raise _refused(file, "other users can read it, or it is theirs",
                       f"chmod 600 {file}")
    tokens = {}
    for line in text.splitlines():
        found = re.fullmatch(r"(operator|viewer) ([!-~]{16,512})", line.strip())
        if found:
            tokens[found[2]] = found[1]
        elif line.strip():
            raise _refused(file, "a line is not 'ROLE TOKEN' with a token of "
                           "at least 16 characters", "write 'operator TOKEN' "
                           "or 'viewer TOKEN'")
    if not tokens:
        raise _refused(file, "it holds no token", "remove it, and a new one "
                       "is written")
    return Tokens(tokens)


def _refused(file: pathlib.Path, why: str, next: str) -> Exception:
    return refused("service.token_file", "cannot use the token file",
                   str(file), why, next)


def peer_uid(connection: socket.socket) -> int | None:
    """The user of the process at the other end; None where it is not known
    (another machine, or a container's port mapping)."""
    if connection.family == socket.AF_UNIX:
        size = struct.calcsize("3i")
        found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED,
                                      size)
        return int(struct.unpack("3i", found)[1])
    try:
        ours, theirs = connection.getsockname(), connection.getpeername()
    except OSError:
        return None
    return _uid_of_tcp(theirs, ours, connection.family)


def _uid_of_tcp(local: tuple[object, ...], remote: tuple[object, ...],
                family: int) -> int | None:
    """The owner of the socket at `local` of this machine."""
    table = "/proc/net/tcp6" if family == socket.AF_INET6 else "/proc/net/tcp"
    wanted = f" {_in_table(local, family)} {_in_table(remote, family)} "
    try:
        with open(table, encoding="ascii") as file:
            for line in file:
                if wanted in line:
                    return int(line.split()[7])
    except (OSError, ValueError, IndexError):
        return None
    return None


def _in_table(address: tuple[object, ...], family: int) -> str:
    packed = socket.inet_pton(family, str(address[0]).partition("%")[0])
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    port = address[1]
    assert isinstance(port, int)
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"
