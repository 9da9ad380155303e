"""The process ends well, whatever is left: code 0 and not a word."""
import signal
import unittest

from entry import main
from positions import Case, has, run_python

# A daemon thread is wherever it is when Python ends: often enough to be
# everywhere once.
THREAD = "import threading, time\ndef daemon(work):\n" \
         "  threading.Thread(target=work, daemon=True).start()\n"
DAEMONS = {
    "takes batches": "for batch in loader.batches(): batch.numpy()",
    "takes them behind a line": "for _ in loader.progress(10**9, file="
                                "open('/dev/null', 'w')): pass",
    "takes them under a watch": "for _ in loader.batches(): pass",
    "peeks": "while True: loader.peek()",
    "asks for numbers": "while True: loader.stats(), loader.shares()",
    "opens loaders": "while True: penstock.open(path, loader__workers=1)",
    "waits for the disk": "list(slow.batches())",
    "lets arrays go": "while True: [b.numpy() for b in loader.batches(3)]",
}


class TheEnd(Case):
    ENDS = {
        "a loader that iterates": "kept = loader; it = iter(kept); next(it)",
        "a batch alone": "kept = next(iter(loader)); del loader",
        "a field alone": "kept = next(iter(loader)).target; del loader",
        "an array alone": "kept = next(iter(loader)).target.numpy(); del loader",
        "a capsule": "kept = next(iter(loader)).target.__dlpack__()",
        "an iterator alone": "kept = iter(loader); next(kept); del loader",
        "a step": "it = iter(loader); next(it); kept = loader.step(); "
                  "kept.__enter__()",
        "a progress line": "kept = loader.progress(); next(kept)",
        "a verdict": "kept = loader.explain()",
        "a cycle": "class Own: pass\nown = Own(); own.own = own; "
                   "own.loader = loader; own.batch = loader.peek(); "
                   "own.it = iter(loader); own.array = own.batch.target.numpy()",
        "a cycle through the loader": "loader.own = loader; "
                                      "loader.it = iter(loader); "
                                      "loader.batch = next(loader.it)",
        "a finalizer that uses it": (
            "class Own:\n"
            "  def __init__(self, loader): self.loader = loader\n"
            "  def __del__(self):\n"
            "    try: next(iter(self.loader))\n"
            "    except Exception: pass\n"  # it may be too late to import
            "own = Own(loader); own.own = own"),
        "a module's global": "import sys; sys.kept = loader; "
                             "sys.batch = loader.peek()",
        "builtins": "import builtins; builtins.kept = iter(loader); "
                    "next(builtins.kept)",
        "an exit inside an iteration": "import sys\n"
                                       "for batch in loader: sys.exit(0)",
        "an exit inside a step": "import sys\nfor batch in loader:\n"
                                 "  with loader.step(): sys.exit(0)",
        "an exit in another thread's time": (
            "import threading\n"
            "def take():\n  for _ in loader.batches(300): pass\n"
            "threading.Thread(target=take).start()"),
        "a handler at exit that goes on": (
            "import atexit\nit = loader.batches(); next(it)\n"
            "def last():\n  next(it); loader.peek(); loader.stats(); len(loader)"
            "\natexit.register(last)"),
        "a handler at exit that closes": "import atexit\n"
                                         "atexit.register(loader.close)",
        "a drop-in in the middle": (
            "if __name__ == '__main__':\n"
            "  kept = iter(penstock.DataLoader(list(range(99)), num_workers=1))"
            "\n  next(kept)"),
    }

    def end(self, text, before=""):
        start = (f"{before}\nimport penstock\npath = {str(self.path)!r}\n"
                 "loader = penstock.open(path, loader__workers=2)\n")
        done = run_python(start + text)
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (0, "", ""))

    def test_whatever_is_left(self):
        for name, text in self.ENDS.items():
            with self.subTest(name):
                self.end(text)

    def test_in_the_middle_of_a_daemon_thread(self):
        watch = ("import sys; sys.path.insert(0, '.')\n"
                 "from fake_cuda import Gpu\ntorch = Gpu().torch()\n"
                 "torch.profiled = True\n")
        slow = ("slow = penstock.open(path, loader__workers=1, "
                "loader__cache='none', source__round_trip_ms=50)\n")
        for name, text in DAEMONS.items():
            for turn in range(5):
                with self.subTest(name, turn=turn):
                    self.end(
                        THREAD + (slow if "slow" in text else "")
                        + (watch + "sys.modules['torch'] = torch\n"
                           if "watch" in name else "")
                        + f"def work():\n  {text}\ndaemon(work)\n"
                        f"time.sleep({0.01 * turn})")

    def test_a_handler_from_before_the_import_finds_it_closed(self):
        self.end("kept = loader.batches(); batch = next(kept)",
                 "import atexit\ndef last():\n"
                 "  import penstock\n"
                 "  try: next(kept)\n"
                 "  except penstock.RequestError as error:\n"
                 "    assert error.code == 'loader.closed'\n"
                 "    batch.target.numpy()\n"
                 "  else: print('it was not closed')\n"
                 "atexit.register(last)")

    @unittest.skipUnless(has("torch"), "torch is not installed")
    def test_with_tensors_that_are_left(self):
        for text in ("kept = next(iter(loader)).torch(); del loader",
                     "import torch\nkept = next(iter(loader)).torch()"
                     "['target'].float().requires_grad_(); "
                     "sum = (kept * 2).sum(); del kept, loader"):
            with self.subTest(text):
                self.end(text)

    def test_ctrl_c_leaves_by_a_traceback_not_a_crash(self):
        text = (f"import penstock, os, signal, threading\n"
                f"loader = penstock.open({str(self.path)!r}, loader__workers=1,"
                f" loader__cache='none', source__round_trip_ms=1000)\n"
                "threading.Timer(0.3, lambda: os.kill(os.getpid(), "
                "signal.SIGINT)).start()\nlist(loader.batches())")
        done = run_python(text)
        self.assertIn("KeyboardInterrupt", done.stderr)
        self.assertEqual(done.returncode, -signal.SIGINT)

    def test_an_exception_leaves_by_its_own_traceback(self):
        done = run_python(
            f"import penstock\nfor batch in penstock.open({str(self.path)!r})"
            ".progress(): raise ValueError('mine')")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.splitlines()[-1], "ValueError: mine")
        self.assertNotIn("ignored", done.stderr)


class TheEndOfFunctions(Case):
    """The same where threads call Python."""
    end = TheEnd.end
    START = (
        "import threading, time, weakref, numpy, penstock\n"
        "class Slow:\n"
        "  size = 100000\n"
        "  def read(self, ids):\n"
        "    time.sleep(0.005)\n"
        "    return {'n': ids}\n"
        "def opened(**more):\n"
        "  return penstock.Loader(Slow(), batch_size=10, **more)\n"
        "def twice(row): return {'n': row['n'] * 2}\n")
    ENDS = {
        "an iteration alone": "kept = iter(opened(num_workers=2)); next(kept)",
        "an iteration that was never asked": (
            "kept = iter(opened(num_workers=2))"),
        "an iteration behind a line": (
            "kept = opened(num_workers=2).progress(file=open('/dev/null', 'w'))"
            "; next(kept)"),
        "a generator's iteration": (
            "def batches():\n  for b in opened(num_workers=2): yield b\n"
            "kept = batches(); next(kept)"),
        "a batch alone": "kept = next(iter(opened(num_workers=2)))",
        "a step alone": "kept = opened(num_workers=2).step()",
        "iterations in a cycle": (
            "kept = [iter(opened(num_workers=2)) for _ in range(3)]\n"
            "kept.append(kept); [next(b) for b in kept[:3]]; del kept"),
        "a function that holds its loader": (
            "def own():\n"
            "  loader = opened(num_workers=2)\n"
            "  loader.map(lambda row: {'n': row['n'] + (loader is not None)})\n"
            "  return iter(loader)\n"
            "kept = own(); next(kept)"),
        "builtins": ("import builtins\n"
                     "builtins.kept = iter(opened(num_workers=2).map(twice))\n"
                     "next(builtins.kept)"),
        "a module that goes first": (
            "import sys\nsys.modules['kept'] = kept = iter(opened("
            "num_workers=8)); next(kept)"),
        "an error that is kept": (
            "def bad(row):\n"
            "  if row['n'] == 50: raise ValueError\n"
            "  return dict(row)\n"
            "loader = opened(num_workers=2)\n"
            "try:\n  for _ in loader.map(bad): pass\n"
            "except penstock.TransformError as error: kept = error\n"
            "batches = iter(loader); del loader"),
        "a slow function": (
            "loader = opened(num_workers=2, prefetch_factor=1)\n"
            "def slow(row):\n"
            "  if row['n'] > 9: time.sleep(0.05)\n"
            "  return dict(row)\n"
            "kept = iter(loader.map(slow)); del loader; next(kept)"),
        "a weak reference with a callback": (
            "kept = opened(num_workers=2)\n"
            "watch = weakref.ref(kept, lambda _: list(range(99)))\n"
            "kept = iter(kept); next(kept)"),
        "a loader that a thread lets go of": (
            "kept = [iter(opened(num_workers=2).map(twice))]; next(kept[0])\n"
            "threading.Thread(target=lambda: (time.sleep(0.02), kept.clear())"
            ").start()"),
    }
    DAEMONS = {
        "opens": "while True: opened(num_workers=2)",
        "opens and maps": "while True: opened(num_workers=2).map(twice)",
        "opens and iterates": "while True: next(iter(opened(num_workers=2)))",
        "iterates": "for _ in opened(num_workers=2).map(twice): pass",
        "iterates on its own": "for _ in opened(num_workers=0).map(twice): pass",
        "peeks": "l = opened(num_workers=1).map(twice)\n  while True: l.peek()",
        "a function that iterates": (
            "inner = opened(num_workers=1).batches()\n"
            "  def both(rows): return {'n': next(inner).n.numpy()}\n"
            "  for _ in opened(num_workers=0).map(both, batched=True): pass"),
        "leaves garbage": (
            "while True:\n"
            "    own = [opened(num_workers=2).map(twice)]; own.append(own)"),
    }

    def test_whatever_is_left(self):
        for name, text in self.ENDS.items():
            with self.subTest(name):
                self.end(text, self.START)

    def test_in_the_middle_of_a_daemon_thread(self):
        for name, text in self.DAEMONS.items():
            for turn in range(5):
                with self.subTest(name, turn=turn):
                    self.end(f"def work():\n  {text}\ndaemon(work)\n"
                             f"time.sleep({0.02 + 0.013 * turn})",
                             THREAD + self.START)

    def interrupt(self, loaders, after, text=""):
        """Ctrl-C so many seconds after the end began, with loaders at work."""
        done = run_python(
            f"import atexit, os, signal, sys, types\n{THREAD}{self.START}"
            "def slow(row): time.sleep(0.03); return row\n"
            "kept = [iter(opened(num_workers=2).map(slow)) "
            f"for _ in range({loaders})]\n"
            "for batches in kept: next(batches)\n"
            "def now():\n"
            f"  time.sleep({after}); os.kill(os.getpid(), signal.SIGINT)\n"
            f"atexit.register(lambda: daemon(now))\n{text}")
        self.assertNotIn("Fatal", done.stderr)
        self.assertIn("KeyboardInterrupt", done.stderr)
        self.assertGreaterEqual(done.returncode, 0)

    def test_ctrl_c_while_loaders_are_closed_is_no_crash(self):
        self.interrupt(4, 0.05)

    def test_a_loader_that_a_thread_opens_meanwhile_is_closed_too(self):
        done = run_python(
            "import numpy, penstock\n"
            "from penstock._loader import base\n"
            "ends = base._ends()\n"
            "next(ends)\n"
            "kept = penstock.Loader({'n': numpy.arange(9)})\n"
            "for end in ends: end()\n"
            "print(kept._engine.closed())")
        self.assertEqual(done.stdout, "True\n", done.stderr)

    def test_ctrl_c_while_a_call_is_waited_for_is_no_crash(self):
        self.interrupt(
            3, 0.1,
            "sys.modules.setdefault('torch', types.ModuleType('torch'))\n"
            "class Watch:\n"
            "  def asks(self): time.sleep(0.4)\n"
            "  def got(self, epoch, rows): pass\n"
            "  rests = asks\n"
            "watched = opened(num_workers=1)._engine.epoch(Watch())\n"
            "daemon(lambda: list(watched))\n"
            "class Lingers:\n"
            "  def __del__(self):\n"
            "    end = time.time() + 0.3\n"
            "    while time.time() < end: pass\n"
            "sys.lingers = Lingers()")

    def test_a_handler_from_before_the_import_cannot_call_threads(self):
        for text in ("opened(num_workers=2)", "opened(num_workers=0)",
                     "penstock.Loader({'n': numpy.arange(9)}).map(twice)"):
            with self.subTest(text):
                self.end("", "import atexit\n@atexit.register\ndef last():\n"
                         f"  try: {text}\n"
                         "  except penstock.RequestError as error:\n"
                         "    assert error.code == 'loader.ending', error\n"
                         "  else: print('it was opened')\n" + self.START)

    def test_a_handler_from_after_the_import_can(self):
        self.end("import atexit\n@atexit.register\ndef last():\n"
                 "  loader = opened(num_workers=2).map(twice)\n"
                 "  batches = iter(loader)\n"
                 "  assert next(batches).n.numpy()[1] == 2", self.START)


if __name__ == "__main__":
    main()
