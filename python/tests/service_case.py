"""What tests of the job service share: a service of its own, with a table, a
recipe and a program that pretends to train."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

try:
    import fastapi  # noqa: F401
    import uvicorn  # noqa: F401
    MISSING = ""
except ImportError as missing:
    MISSING = f"the extra penstock[serve] is not installed: {missing}"

ENDED = ("done", "failed", "cancelled")
REAL = "29b7b2f4-eb9b-4e22-a77f-c03f0c4ca876"
OTHER = "11111111-eb9b-4e22-a77f-c03f0c4ca876"
REQUEST = {
    "job_name": "GPU Cache Test - UHF Mixed",
    "config": {"dataset_ids": [REAL], "batch_size": 256, "epochs": 1000,
               "learning_rate": 0.001, "preload_to_gpu": True,
               "accelerator": "auto"}}

# Takes steps, each one second's fraction long, saves its state every step and
# writes it to a file, as `penstock train` does.
PRETENDS = r'''#!{python}
import json, os, signal, sys, time
arguments = sys.argv[2:]
resumed = arguments[0] == "--resume"
job = json.load(open(os.path.join(arguments[1], "run.json"))) if resumed else \
    json.load(open(arguments[0]))
steps = int(job.get("train", {{}}).get("epochs", 3))
taken = json.load(open(os.path.join(arguments[1], "state.json")))[
    "steps_taken"] if resumed else 0
runs = job["output"]["dir"]
folder = os.path.join(runs, f"20260101T{{time.time_ns():020d}}Z-{{os.getpid()}}")
os.makedirs(folder)
def put(name, document):
    path = os.path.join(folder, name)
    with open(path + ".new", "w") as file:
        json.dump(document, file)
    os.replace(path + ".new", path)
put("run.json", job)
link = os.path.join(runs, "latest")
os.symlink(folder, link + f".{{os.getpid()}}")
os.replace(link + f".{{os.getpid()}}", link)
stop = []
signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
trace = open(os.path.join(runs, "..", "trace.txt"), "a")
if os.environ.get("PRETEND_ERROR"):
    print(json.dumps({{"error": {{"kind": "source", "code": "sqlite.locked",
        "what": "w", "where": "x", "why": "because", "next": "n"}}}}))
    sys.exit(3)
print("begins", "resumed" if resumed else "afresh", file=sys.stderr, flush=True)
while taken < steps and not stop:
    time.sleep({step_s})
    taken += 1
    trace.write(f"{{taken}} {{os.getpid()}} {{time.monotonic()}}\n"); trace.flush()
    put("state.json", {{"steps_taken": taken}})
    put("progress.json", {{"steps_taken": taken, "steps": steps, "epoch": taken,
        "epochs": steps, "numbers": {{"loss": 1 / taken}},
        "so_far": {{"verdict": {{"limit": "compute"}}}}}})
    with open(os.path.join(folder, "epochs.csv"), "a") as file:
        if file.tell() == 0: file.write("epoch,train_loss\n")
        file.write(f"{{taken}},{{1 / taken}}\n")
put("report.json", {{"steps": taken, "interrupted": bool(stop), "metrics": {{}}}})
sys.exit(143 if stop else 0)
'''


@unittest.skipIf(MISSING, MISSING)
class ServiceCase(unittest.TestCase):
    step_s = 0.02
    settings = {}
    arguments = {}

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-service"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.addCleanup(self.end_jobs)
        make_table(self.folder / "train.sqlite")
        (self.folder / "job.json").write_text(json.dumps(JOB))
        program = self.folder / "pretends"
        program.write_text(PRETENDS.format(python=sys.executable,
                                           step_s=self.step_s))
        program.chmod(0o755)
        self.program = str(program)
        self.configure()
        self.service = None
        self.environment = {}

    def configure(self, **more):
        document = {"recipes": {"positions": {
            "job": "job.json", "dataset_column": "dataset_id"}},
            "runs": "runs", "slots": 1, **self.settings, **more}
        (self.folder / "service.json").write_text(json.dumps(document))

    def start(self, http=True, wait=True, **more):
        """The service, once it answers."""
        request = {"config": str(self.folder / "service.json"),
                   "http": http if isinstance(http, str) else (
                       "127.0.0.1:0" if http else ""),
                   "socket": str(self.folder / "s"), "token_file": "",
                   "trust_local_user": False, "json": True, **self.arguments,
                   **more}
        self.service = subprocess.Popen(
            [sys.executable, "-m", "penstock._service", json.dumps(request)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PENSTOCK": self.program, **self.environment})
        self.addCleanup(self.kill, self.service)
        if not wait:
            return self.service
        line = self.service.stdout.readline()
        if not line:
            self.fail(self.service.stderr.read())
        said = json.loads(line)
        self.url = said.get("http", "")
        self.port = int(self.url.rpartition(":")[2] or 0)
        if http:
            lines = (self.folder / "runs" / "token").read_text().split()
            self.token, self.viewer = lines[1], lines[3]
        return said

    def kill(self, process=None, how=signal.SIGKILL):
        process = process or self.service
        if process.poll() is None:
            process.send_signal(how)
        process.communicate()

    def end_jobs(self):
        """Kills what the tests' jobs have left."""
        for file in self.folder.glob("runs/*/attempt-*/process.json"):
            with contextlib.suppress(OSError, ValueError):
                process = json.loads(file.read_text())
                for pid in (process["shim"], process["pid"]):
                    if str(self.folder) in pathlib.Path(
                            f"/proc/{pid}/cmdline").read_text():
                        os.kill(pid, signal.SIGKILL)

    def client(self, **more):
        import penstock
        return penstock.Client(str(self.folder / "s"), **more)

    def raw(self, data, wait_s=5.0, unix=False):
        """The answer to these bytes, as (status, text)."""
        with self.connected(unix) as connection:
            connection.settimeout(wait_s)
            connection.sendall(data)
            return read_answer(connection)

    def connected(self, unix=False):
        if unix:
            made = socket.socket(socket.AF_UNIX)
            made.connect(str(self.folder / "s"))
            return made
        return socket.create_connection(("127.0.0.1", self.port))

    def ask(self, method, path, body=b"", headers=None, token=None,
            unix=False):
        """(status, document or text) of a request over HTTP."""
        sent = {"Host": f"127.0.0.1:{self.port}", "Connection": "close"}
        if unix:
            sent["Host"] = "localhost"
        elif token != "":
            sent["Authorization"] = f"Bearer {token or self.token}"
        if body:
            sent["Content-Length"] = str(len(body))
            sent["Content-Type"] = "application/json"
        sent.update(headers or {})
        head = "".join(f"{name}: {value}\r\n" for name, value in sent.items()
                       if value is not None)
        status, text = self.raw(
            f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body,
            unix=unix)
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text

    def until(self, what, seconds=30.0):
        """What `what()` gives, once that is true."""
        end = time.monotonic() + seconds
        while not (found := what()):
            if time.monotonic() > end:
                self.fail(f"{what} has not come true in {seconds} s")
            time.sleep(0.02)
        return found

    def status_of(self, job_id):
        return self.client().job(job_id)["status"]

    def trace(self, job_id):
        """The steps that the job has taken, in their order, and the process
        that took each."""
        return [(int(step), int(process))
                for step, process, _ in self.trace_lines(job_id)]

    def trace_lines(self, job_id):
        """... and when, as time.monotonic() has it."""
        file = self.folder / "runs" / job_id / "trace.txt"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line.split() for line in lines]


JOB = {"source": {"kind": "sqlite", "path": "train.sqlite",
                  "table": "positions"},
       "fields": {"x": {"columns": ["a", "b"]}, "y": {"columns": ["y"]}},
       "split": {"train": 0.8, "val": 0.2}, "loader": {"batch_size": 64},
       "model": {"kind": "tabular", "target": "y"}, "train": {"epochs": 3}}


def make_table(file):
    database = sqlite3.connect(file)
    database.execute("CREATE TABLE positions(id INTEGER PRIMARY KEY, "
                     "dataset_id TEXT, a REAL, b REAL, y REAL)")
    database.executemany(
        "INSERT INTO positions(dataset_id, a, b, y) VALUES(?, ?, ?, ?)",
        [((REAL, OTHER)[n % 2], n % 7, n % 5, n % 7 - n % 5)
         for n in range(400)])
    database.commit()
    database.close()


def rss_mib(process):
    """The resident memory of a process that was started."""
    with open(f"/proc/{process.pid}/status") as file:
        for line in file:
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
    raise RuntimeError("the process has no memory: it has ended")


def read_answer(connection):
    """(status, body as text); (0, "") where the connection was closed."""
    data = b""
    try:
        while piece := connection.recv(65536):
            data += piece
    except (ConnectionResetError, TimeoutError):
        pass
    head, _, body = data.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 "):
        return 0, ""
    if b"transfer-encoding: chunked" in head.lower():
        body = _unchunked(body)
    return int(head[9:12]), body.decode()


def _unchunked(body):
    whole = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size or b"0", 16)
        whole += body[:length]
        body = body[length + 2:]
        if length == 0:
            break
    return whole
