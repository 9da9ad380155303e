"""What every request passes before a route sees it.

Host, Origin and Sec-Fetch-Site must be those of this service (a page of
another site must not reach it through a browser), a token or a trusted peer
must be there, and a body has limits of size and depth.
"""

from __future__ import annotations

import dataclasses
import http.cookies
import json
from typing import Any, Awaitable, Callable, Mapping

from .failure import Failure
from .tokens import Tokens

MOST_BYTES = 1 << 20
MOST_DEPTH = 64
MOST_HEADER_BYTES = 32 << 10

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_READS = ("GET", "HEAD")
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin")]
_POLICY = (b"default-src 'none'; script-src 'self'; style-src 'self'; "
           b"img-src 'self' data:; connect-src 'self'; frame-src 'self'; "
           b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


@dataclasses.dataclass(frozen=True)
class Rules:
    """Who may ask, and by which names."""

    uid: int
    tokens: Tokens | None
    trust_local_user: bool
    port: int  # 0: HTTP is not served

    def hosts(self) -> tuple[str, ...]:
        return tuple(f"{name}:{self.port}"
                     for name in ("127.0.0.1", "localhost", "[::1]"))

    def cookie(self) -> str:
        """Cookies are not kept apart by port, so the name has it."""
        return f"penstock-{self.port}"


class Guard:
    """Around the application (ASGI)."""

    def __init__(self, app: Any, rules: Rules) -> None:
        self._app, self._rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send
                       ) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self._http(scope, receive, _with_headers(send))

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            headers = _headers(scope)
            peer = scope.get("penstock.peer") or {}
            self._check_origin(headers, bool(peer.get("unix")))
            if not _is_public(scope["method"], scope["path"]):
                scope["penstock.role"] = self._role(headers, peer)
                _check_role(scope)
            body = await _body(headers, receive)
        except Failure as failure:
            await _answer(failure, send)
            return
        await self._app(scope, _again(body, receive), send)

    def _check_origin(self, headers: Mapping[str, str], unix: bool) -> None:
        host = headers.get("host", "").lower()
        if unix:
            good = host.partition(":")[0] in ("", "localhost", "penstock")
        else:
            good = host in self._rules.hosts()
        if not good:
            raise _forbidden("Host", host, "ask for http://127.0.0.1:PORT or "
                             "localhost")
        origin = headers.get("origin")
        if origin is not None and (unix or origin.lower() not in [
                f"http://{one}" for one in self._rules.hosts()]):
            raise _forbidden("Origin", origin, "open the service's own page")
        site = headers.get("sec-fetch-site", "none")
        if site not in ("none", "same-origin"):
            raise _forbidden("Sec-Fetch-Site", site,
                             "type the address, or open the service's page")

    def _role(self, headers: Mapping[str, str], peer: Mapping[str, Any]) -> str:
        """Raises Failure 401."""
        rules = self._rules
        if "uid" in peer and (peer["unix"] or rules.trust_local_user):
            if peer["uid"]() == rules.uid:  # looked up when it is needed
                return "operator"
        if rules.tokens is not None:
            scheme, _, token = headers.get("authorization", "").partition(" ")
            if scheme.lower() == "bearer":
                role = rules.tokens.role_of(token.strip())
            else:
                role = rules.tokens.role_of_cookie(
                    _cookie(headers.get("cookie", ""), rules.cookie()))
            if role is not None:
                return role
        raise Failure(401, "service.token", "cannot answer the request",
                      "Authorization", "there is no token, or another one",
                      "send 'Authorization: Bearer TOKEN' with a token of the "
                      "service's token file, or ask through its socket")


def _is_public(method: str, path: str) -> bool:
    """The page and its assets hold no data."""
    return method in _READS and (path == "/" or path.startswith("/assets/"))


def _check_role(scope: Scope) -> None:
    if scope["method"] in _READS or scope["path"] == "/api/session":
        return
    if scope["penstock.role"] != "operator":
        raise Failure(403, "service.role", "cannot change anything",
                      scope["path"], "the token is one of a viewer, who may "
                      "only read", "use a token of an operator")


def _forbidden(header: str, found: str, next: str) -> Failure:
    return Failure(403, "service.origin", "cannot answer the request", header,
                   f"found '{found[:100]}', which is not this service", next)


def _headers(scope: Scope) -> dict[str, str]:
    """One value each. Raises Failure for a header that is there twice."""
    found: dict[str, str] = {}
    if sum(len(name) + len(value) for name, value in scope["headers"]
           ) > MOST_HEADER_BYTES:
        raise Failure(400, "service.request", "cannot read the request",
                      "the headers", f"they are larger than "
                      f"{MOST_HEADER_BYTES} bytes", "send fewer")
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        if key in found and key in ("host", "origin", "authorization",
                                    "content-length", "sec-fetch-site"):
            raise Failure(400, "service.request", "cannot read the request",
                          key, "the header is there twice", "send it once")
        found[key] = value.decode("latin-1")
    return found


def _cookie(header: str, name: str) -> str:
    try:
        found = http.cookies.SimpleCookie(header).get(name)
    except http.cookies.CookieError:
        return ""
    return found.value if found else ""


async def _body(headers: Mapping[str, str], receive: Receive) -> bytes:
    """The whole body. Raises Failure 413 once it exceeds the limit."""
    length = headers.get("content-length", "0")
    if not length.isascii() or not length.isdigit():
        raise Failure(400, "service.request", "cannot read the request",
                      "Content-Length", "it is not a number", "send a number")
    if len(length) > 12 or int(length) > MOST_BYTES:
        raise _too_large()
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b""  # the client is gone
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MOST_BYTES:
            raise _too_large()
        if not message.get("more_body"):
            break
    body = b"".join(parts)
    check_depth(body)
    return body


def _too_large() -> Failure:
    return Failure(413, "service.too_large", "cannot read the request",
                   "the body", f"it is larger than {MOST_BYTES} bytes",
                   "send a smaller request")


def check_depth(body: bytes) -> None:
    """Refuses JSON that is nested deeper than MOST_DEPTH."""
    depth, in_text, escaped = 0, False, False
    for byte in body:
        if in_text:
            if escaped:
                escaped = False
            elif byte == 0x5C:  # backslash
                escaped = True
            elif byte == 0x22:
                in_text = False
        elif byte == 0x22:
            in_text = True
        elif byte in b"[{":
            depth += 1
            if depth > MOST_DEPTH:
                raise Failure(400, "service.request",
                              "cannot read the request", "the body",
                              f"it is nested deeper than {MOST_DEPTH}",
                              "send a flat object")
        elif byte in b"]}":
            depth -= 1


def _again(body: bytes, receive: Receive) -> Receive:
    """Gives the body that was read already, then what follows."""
    given = False

    async def again() -> dict[str, Any]:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _with_headers(send: Send) -> Send:
    async def sending(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            has = {name for name, _ in message.get("headers", [])}
            message["headers"] = [*message.get("headers", []), *(
                header for header in _HEADERS if header[0] not in has)]
            if b"content-security-policy" not in has:
                message["headers"].append((b"content-security-policy", _POLICY))
            if b"cache-control" not in has:
                message["headers"].append((b"cache-control", b"no-store"))
        await send(message)

    return sending


async def _answer(failure: Failure, send: Send) -> None:
    body = json.dumps(failure.document()).encode()
    headers = [(b"content-type", b"application/json"),
               (b"content-length", str(len(body)).encode())]
    if failure.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if failure.status in (400, 413):
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": failure.status,
                "headers": headers})
    await send({"type": "http.response.body", "body": body})
