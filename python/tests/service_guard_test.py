"""Who may ask the job service: every route of its OpenAPI document with every
way of not being allowed to, slow clients, and bodies without end."""

import collections
import contextlib
import itertools
import json
import os
import random
import resource
import socket
import time
import unittest

from entry import main
from service_case import ServiceCase, read_answer, rss_mib

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


class Attacks(ServiceCase):
    def setUp(self):
        super().setUp()
        self.start()

    def routes(self):
        status, document = self.ask("GET", "/api/openapi.json")
        self.assertEqual(status, 200)
        paths = [path.replace("{job_id}", "0" * 12).replace("{name}", "x")
                 for path in document["paths"]] + ["/api/openapi.json"]
        self.assertGreater(len(paths), 12)
        return paths

    def test_each_route_refuses_each_stranger(self):
        port = self.port
        strangers = {
            "no token": {"Authorization": None},
            "a bad token": {"Authorization": "Bearer " + "x" * 43},
            "an empty token": {"Authorization": "Bearer "},
            "a bad cookie": {"Authorization": None,
                             "Cookie": f"penstock-{port}=" + "0" * 64},
            "the token as a cookie": {
                "Authorization": None,
                "Cookie": f"penstock-{port}={self.token}"},
            "another host": {"Host": "example.org"},
            "another port": {"Host": f"127.0.0.1:{port + 1}"},
            "a rebound name": {"Host": f"evil.example:{port}"},
            "another origin": {"Origin": "http://example.org"},
            "an opaque origin": {"Origin": "null"},
            "https": {"Origin": f"https://127.0.0.1:{port}"},
            "another site": {"Sec-Fetch-Site": "cross-site"},
            "a sibling site": {"Sec-Fetch-Site": "same-site"}}
        for path, method, (name, headers) in itertools.product(
                self.routes(), METHODS, strangers.items()):
            status, answer = self.ask(method, path, headers=headers)
            with self.subTest(f"{method} {path}: {name}"):
                self.assertIn(status, (401, 403))
                self.assertIn(answer["error"]["code"],
                              ("service.token", "service.origin"))

    def test_a_viewer_changes_nothing(self):
        job = self.client().submit("x", {"epochs": 500})["id"]
        for path, method in itertools.product(self.routes(), (
                "POST", "PUT", "PATCH", "DELETE")):
            path = path.replace("0" * 12, job)
            if path == "/api/session":
                continue
            status, answer = self.ask(method, path, token=self.viewer)
            with self.subTest(f"{method} {path}"):
                self.assertEqual((status, answer["error"]["code"]),
                                 (403, "service.role"))
        self.assertEqual(self.ask("GET", f"/api/training/jobs/{job}",
                                  token=self.viewer)[0], 200)

    def test_no_route_upgrades_to_a_websocket(self):
        for path in self.routes():
            status, _ = self.ask("GET", path, token="", headers={
                "Upgrade": "websocket", "Connection": "Upgrade",
                "Sec-WebSocket-Version": "13",
                "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="})
            self.assertEqual(status, 401)

    def test_the_page_holds_no_data_and_needs_no_token(self):
        status, text = self.ask("GET", "/", token="")
        self.assertEqual(status, 200)
        self.assertIn("<title>Trainings", text)
        for name in ("page.js", "style.css", "icon.svg"):
            self.assertEqual(self.ask("GET", f"/assets/{name}", token="")[0],
                             200)
        for name in ("../api.py", "%2e%2e/api.py", "..%2fapi.py", "x.js"):
            self.assertEqual(self.ask("GET", f"/assets/{name}", token="")[0],
                             404, name)

    def test_a_token_becomes_a_cookie_that_no_script_reads(self):
        with self.connected() as connection:
            connection.sendall(
                f"POST /api/session HTTP/1.1\r\nHost: 127.0.0.1:{self.port}"
                f"\r\nAuthorization: Bearer {self.token}\r\nConnection: close"
                "\r\nContent-Length: 0\r\n\r\n".encode())
            data = b""
            while piece := connection.recv(65536):
                data += piece
        line = next(line for line in data.decode().split("\r\n")
                    if line.lower().startswith("set-cookie: "))
        self.assertIn("HttpOnly", line)
        self.assertIn("samesite=strict", line.lower())
        self.assertNotIn(self.token, line)
        cookie = line.partition(": ")[2].partition(";")[0]
        status, _ = self.ask("GET", "/api/machine", token="",
                             headers={"Cookie": cookie})
        self.assertEqual(status, 200)

    def test_artifacts_are_names_and_no_paths(self):
        job = self.client().submit("x", {"epochs": 1})["id"]
        self.client().wait(job, 0.05)
        for name in ("../command.json", "..%2Fcommand.json", "%2e%2e/lock",
                     "/etc/passwd", "weights/../../../lock", "x%00"):
            status, _ = self.ask(
                "GET", f"/api/training/jobs/{job}/artifacts/{name}")
            self.assertEqual(status, 404, name)

    def test_what_is_no_http_harms_nothing(self):
        port = self.port
        host = f"Host: 127.0.0.1:{port}\r\n"
        for data in (b"\x16\x03\x01\x02\x00\x01", b"GET\r\n\r\n", b"\0" * 100,
                     b"GET / HTTP/1.1\r\n\r\n",
                     f"GET / HTTP/1.1\r\n{host}{host}\r\n".encode(),
                     f"POST /healthz HTTP/1.1\r\n{host}Content-Length: -1\r\n"
                     "\r\n".encode(),
                     f"POST /healthz HTTP/1.1\r\n{host}Content-Length: 4\r\n"
                     "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n".encode(),
                     f"GET / HTTP/1.1\r\n{host}X: {'y' * 70_000}\r\n\r\n"
                     .encode()):
            status, _ = self.raw(data)
            self.assertNotIn(status // 100, (2, 5), data[:60])
        self.assertEqual(self.ask("GET", "/healthz")[0], 200)


class LocalUser(ServiceCase):
    arguments = {"trust_local_user": True}

    def test_ones_own_processes_need_no_token(self):
        self.start()
        self.assertEqual(self.ask("GET", "/healthz", token="")[0], 200)

    @unittest.skipUnless(os.getuid() == 0, "only root becomes another user")
    def test_those_of_others_do(self):
        self.start()
        port = self.port
        reads, writes = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setuid(65534)
                with socket.create_connection(("127.0.0.1", port)) as one:
                    one.sendall(f"GET /healthz HTTP/1.1\r\nHost: localhost:"
                                f"{port}\r\nConnection: close\r\n\r\n"
                                .encode())
                    os.write(writes, str(read_answer(one)[0]).encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        self.assertEqual(os.read(reads, 10), b"401")


class SlowClients(ServiceCase):
    def setUp(self):
        super().setUp()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE,
                        (soft, hard))
        self.start()

    def health_ms(self, times=40):
        """The slowest but one of so many answers."""
        took = []
        for _ in range(times):
            begin = time.monotonic()
            self.assertEqual(self.ask("GET", "/healthz")[0], 200)
            took.append(1e3 * (time.monotonic() - begin))
        return sorted(took)[-2]

    def test_half_sent_requests_are_closed(self):
        self.health_ms()
        before = rss_mib(self.service)
        begin = time.monotonic()
        slow = [self.connected() for _ in range(1000)]
        for one in slow:
            self.addCleanup(one.close)
            one.sendall(b"POST /api/training/jobs HTTP/1.1\r\nHost: 127")
        busy = self.health_ms()
        grown = rss_mib(self.service) - before
        for one in slow:
            one.settimeout(25)
            with contextlib.suppress(ConnectionResetError):
                self.assertEqual(one.recv(1), b"")
        took = time.monotonic() - begin
        print(f"\n1,000 half-sent requests: closed within {took:.1f} s, RSS + "
              f"{grown:.1f} MiB, health p97 {busy:.0f} ms meanwhile")
        self.assertLess(grown, 16)
        self.assertLess(took, 25)

    def test_a_body_of_a_gigabyte_is_refused_at_once(self):
        before = rss_mib(self.service)
        head = (f"POST /api/training/jobs HTTP/1.1\r\nHost: 127.0.0.1:"
                f"{self.port}\r\nAuthorization: Bearer {self.token}\r\n")
        for how, piece in (
                (f"Content-Length: {1 << 30}\r\n\r\n", b"x" * 65536),
                ("Transfer-Encoding: chunked\r\n\r\n",
                 b"10000\r\n" + b"x" * 65536 + b"\r\n")):
            sent = 0
            with self.connected() as one:
                one.settimeout(10)
                one.sendall((head + how).encode())
                try:
                    while sent < 1 << 30:
                        sent += one.send(piece)
                except (ConnectionError, TimeoutError):
                    pass
            self.assertLess(sent, 16 << 20)
        self.assertLess(rss_mib(self.service) - before, 16)
        self.assertEqual(self.client().jobs(), [])

    def test_a_reader_that_never_reads_is_dropped(self):
        job = self.client().submit("x", {"epochs": 3})["id"]
        self.client().wait(job, 0.05)
        log = self.folder / "runs" / job / "log.txt"
        with open(log, "ab") as file:
            file.truncate(64 << 20)
        before = rss_mib(self.service)
        with self.connected() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            one.sendall(
                f"GET /api/training/jobs/{job}/logs HTTP/1.1\r\nHost: "
                f"127.0.0.1:{self.port}\r\nAuthorization: Bearer {self.token}"
                "\r\n\r\n".encode())
            time.sleep(14)
            self.assertLess(rss_mib(self.service) - before, 16)
            one.settimeout(5)
            taken = 0
            try:
                while piece := one.recv(1 << 20):
                    taken += len(piece)
            except ConnectionResetError:
                pass
            self.assertLess(taken, 32 << 20)

    def test_many_listeners_hear_in_time(self):
        job = self.client().submit("x", {"epochs": 500})["id"]
        self.until(lambda: self.trace(job))
        head = (f"GET /api/training/jobs/{job}/events HTTP/1.1\r\nHost: "
                f"127.0.0.1:{self.port}\r\nAuthorization: Bearer {self.token}"
                "\r\n\r\n").encode()
        listeners = [self.connected() for _ in range(200)]
        for one in listeners:
            self.addCleanup(one.close)
            one.sendall(head)
        self.client().cancel(job)
        self.client().wait(job, 0.05)
        ended = time.monotonic()
        for one in listeners:
            one.settimeout(10)
            said = b""
            while b'"cancelled"' not in said:
                piece = one.recv(65536)
                self.assertTrue(piece)
                said = said[-200:] + piece
        late = time.monotonic() - ended
        print(f"\n200 listeners heard the end {late:.2f} s after the service "
              "answered it")
        self.assertLess(late, 5)


class Strange(ServiceCase):
    """Requests by chance: PENSTOCK_TEST_REQUESTS of them (500)."""

    arguments = {"trust_local_user": True}
    settings = {"slots": 0}
    LEAVES = (None, True, False, 0, -1, 1, 2**53, 2**64, -2**70, 1e308, 0.5, "",
              "x", "29b7b2f4", "\0", "\ud800", "\u202e", "../..", "' OR 1=1 --",
              "a" * 5000, [], {}, [[]], {"": None})

    def value(self, depth=0):
        kind = self.random.random()
        if depth > 3 or kind < 0.6:
            return self.random.choice(self.LEAVES)
        if kind < 0.8:
            return [self.value(depth + 1)
                    for _ in range(self.random.randrange(4))]
        return {self.random.choice(self.KEYS): self.value(depth + 1)
                for _ in range(self.random.randrange(5))}

    def body(self):
        if self.random.random() < 0.1:
            return self.random.randbytes(self.random.randrange(50))
        document = {"job_name": "x", "config": {}}
        for _ in range(self.random.randrange(4)):
            place = self.random.choice((document, document["config"])
                                       if isinstance(document["config"], dict)
                                       else (document,))
            place[self.random.choice(self.KEYS)] = self.value()
        return json.dumps(document).encode()

    def test_no_request_is_answered_by_a_bug(self):
        from penstock import _engine
        self.random = random.Random(11)
        self.KEYS = ["job_name", "config", "recipe", "priority", "dataset_ids",
                     "", "x", "\0", *_engine.manifest_keys()]
        self.start()
        _, document = self.ask("GET", "/api/openapi.json")
        routes = [(method.upper(), path) for path, methods in
                  document["paths"].items() for method in methods]
        job = self.client().submit("x")["id"]
        found = collections.Counter()
        routes = [one for one in routes if not one[1].endswith("/events")]
        for _ in range(int(os.environ.get("PENSTOCK_TEST_REQUESTS", "500"))):
            method, path = self.random.choice(routes) if (
                self.random.random() < 0.5) else ("POST",
                                                  "/api/training/jobs")
            path = path.replace("{job_id}", self.random.choice(
                (job, "0" * 12, "%00", "x", "..", "%ff"))).replace(
                    "{name}", self.random.choice(("x", "..%2f", "log.txt")))
            if method == "GET":
                path += self.random.choice(
                    ("", "?status=x", "?from=-1", "?from=9e9", "?most=0",
                     "?from=99999999999999999999", "?%00", "?status=done"))
            status, answer = self.ask(method, path, self.body() if (
                method == "POST") else b"", token="")
            found[status] += 1
            self.assertIn(status, (200, 201, 204, 400, 404, 405, 409, 413, 422,
                                   429), (method, path, answer))
            if status >= 400:
                self.assertEqual(set(answer["error"]), {
                    "kind", "code", "what", "where", "why", "next"})
        print(f"\nstrange requests: {dict(sorted(found.items()))}")
        self.assertGreater(found[422], 20)


class Documents(ServiceCase):
    def test_the_openapi_document_of_the_package_is_that_of_the_service(self):
        import pathlib

        from penstock._service import openapi_document
        file = pathlib.Path(openapi_document.__file__).with_name(
            "openapi.json")
        self.assertEqual(json.loads(file.read_text()), json.loads(
            json.dumps(openapi_document.document())))


if __name__ == "__main__":
    main()
