"""What the tests of users' own models on several ranks begin with: processes
that are started as torchrun starts them."""
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import time

import penstock
from free_port import free_port
from own_model import Case
from penstock import program

PATIENCE_S = 300
HERE = pathlib.Path(__file__).parent

# 150 train rows: the last batch of an epoch has 6, or 22, rows of 32 or 128.
LOADING = {"batch_size": 32, "tail": "exact"}

# Nothing is drawn, and nothing depends on which rows are in a batch together.
NET = """
import torch

class Net(torch.nn.Module):
    def __init__(self, kind, width=16):
        super().__init__()
        self.kind = torch.nn.Embedding(len(kind.classes), 3)
        self.blocks = torch.nn.ModuleList(
            torch.nn.Linear(width, width) for _ in range(2))
        self.first = torch.nn.Linear(5, width)
        self.last = torch.nn.Linear(width, 1)

    def forward(self, x, kind):
        at = self.first(torch.cat([x, self.kind(kind)], 1))
        for block in self.blocks:
            at = at + torch.nn.functional.gelu(block(at))
        return self.last(at)
"""


def environment(rank=None, world=None, port=None):
    package = str(pathlib.Path(penstock.__file__).parent.parent)
    path = os.pathsep.join(filter(None, [package, str(HERE),
                                         os.environ.get("PYTHONPATH")]))
    made = {**os.environ, "PYTHONPATH": path, "PENSTOCK_PYTHON": sys.executable}
    if rank is not None:
        made.update(RANK=str(rank), WORLD_SIZE=str(world),
                    LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(world),
                    MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    return made


def floats(run_or_file):
    """The weights of a file, or of a run's newest checkpoint, by name."""
    path = pathlib.Path(run_or_file)
    if path.is_dir():
        path /= json.loads((path / "state.json").read_text())["checkpoint"]
    data = path.read_bytes()
    size, = struct.unpack("<Q", data[:8])
    found = {}
    for name, about in json.loads(data[8:8 + size]).items():
        if name == "__metadata__" or about["dtype"] != "F32":
            continue
        begin, end = about["data_offsets"]
        found[name.removeprefix("model.")] = struct.unpack(
            f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end])
    return found


class RanksCase(Case):
    def setUp(self):
        super().setUp()
        self.write("net.py", NET)

    def write_job(self, **sections):
        sections = {"train": {"max_steps": 20, "epochs": 10, "lr": 0.01,
                              "warmup_steps": 3, "threads": 1,
                              **sections.pop("train", {})}, **sections}
        self.write("job.json", json.dumps(self.job(**sections)))

    def note_threads(self):
        """Lets the module write how many threads torch has in each rank."""
        self.write("net.py", NET.replace(
            "    def forward(self, x, kind):", """    def forward(self, x, kind):
        import os
        with open("threads-" + os.environ.get("RANK", "alone"), "w") as file:
            file.write(str(torch.get_num_threads()))"""))

    def assert_threads_are_shared(self, world):
        """Among ranks, after one process and then they have noted theirs."""
        alone, *of_ranks = (
            int(pathlib.Path(f"threads-{name}").read_text())
            for name in ("alone", *range(world)))
        self.assertEqual(of_ranks, [max(1, alone // world)] * world)

    def started(self, world, *arguments, job="job.json", of_last=(),
                command=None):
        """Starts `penstock train` once for each rank."""
        port = free_port()
        processes = []
        for rank in range(world):
            process = subprocess.Popen(
                [*(command or (str(program.path()), "train",
                               *([job] if job else []), "--json")),
                 *map(str, arguments), *(of_last if rank == world - 1 else ())],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env=environment(rank, world, port))
            self.addCleanup(lambda one=process: (one.kill(),
                                                 one.communicate()))
            processes.append(process)
        return processes

    def ended(self, processes):
        """(exit code, standard output, standard error) of each."""
        made = []
        for process in processes:
            out, err = process.communicate(timeout=PATIENCE_S)
            made.append((process.returncode, out, err))
        return made

    def trained(self, world, *arguments, job="job.json", **named):
        """Rank 0's report. The other ranks print nothing."""
        ended = self.ended(self.started(world, *arguments, job=job, **named))
        for code, out, err in ended:
            self.assertEqual(code, 0, out + err)
        for _, out, _ in ended[1:]:
            self.assertEqual(out, "")
        return json.loads(ended[0][1])

    def alone(self, *arguments, job="job.json"):
        done = subprocess.run(
            [str(program.path()), "train", *([job] if job else []), "--json",
             *map(str, arguments)], capture_output=True, text=True,
            timeout=PATIENCE_S, check=False, env=environment())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def error_of(self, ended, code):
        """The error that a rank has ended with."""
        exit_code, out, err = ended
        self.assertNotEqual(exit_code, 0)
        error = json.loads(out)["error"]
        self.assertEqual(error["code"], code, str(error) + err)
        return error

    def assert_near(self, found, expected):
        """All within 1e-4, and 99.9 % within 1e-6."""
        self.assertEqual(found.keys(), expected.keys())
        far = count = 0
        for name, numbers in expected.items():
            for one, other in zip(found[name], numbers, strict=True):
                self.assertLess(abs(one - other), 1e-4, name)
                far += abs(one - other) > 1e-6
                count += 1
        self.assertGreater(count, 100)
        self.assertLessEqual(far, count / 1000)

    def assert_losses_near(self, of_ranks, report):
        """Of each epoch, over the rows of all ranks."""
        for one, other in zip(of_ranks["epochs"], report["epochs"],
                              strict=True):
            for name in ("train_loss", "val_loss"):
                self.assertAlmostEqual(one[name], other[name], places=4)

    def stopped_at(self, steps, strategy, sets):
        """The folder of a run of four ranks, one of which was told to end, and
        the steps that it took: all hear of it after the next one."""
        ended = self.ended(self.started(
            4, steps, "job.json", f"train.strategy={strategy}", *sets,
            command=(sys.executable, str(HERE / "own_ranks_signal.py"))))
        for code, _, err in ended:
            self.assertEqual(code, 128 + signal.SIGTERM, err)
        run = pathlib.Path(os.path.realpath("runs/latest"))
        state = json.loads((run / "state.json").read_text())
        self.assertIn(state["steps_taken"], (steps, steps + 1))
        return run, state["steps_taken"]

    def resumes(self, strategy, *sets):
        """It continues with two ranks, and with one; the weights are those of a
        run that was not stopped."""
        self.write_job(loader=LOADING)
        self.alone("--output", "one", *(part for one in sets
                                        for part in ("--set", one)))
        expected = floats("one/model.safetensors")
        run, taken = self.stopped_at(13, strategy, sets)
        for world in (2, 1):
            arguments = ("--resume", run, "--output", f"on-{world}")
            report = self.alone(*arguments, job=None) if world == 1 else \
                self.trained(world, *arguments, job=None)
            self.assertEqual(report["steps"], 20 - taken)
            self.assert_near(floats(f"on-{world}/model.safetensors"), expected)

    def running(self, steps=3):
        """The folder of a run that has taken some steps."""
        latest = pathlib.Path("runs/latest/steps.jsonl")
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            if latest.exists() and len(
                    latest.read_text().splitlines()) >= steps:
                return pathlib.Path(os.path.realpath("runs/latest"))
            time.sleep(0.02)
        self.fail("no run has begun")
