"""How workers come to be: one origin for all loaders, forks by request, and
modules that are imported once."""
import contextlib
import gc
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
import warnings

import dataloader_sets as sets
import penstock
from dataloader_case import (Case, all_numbers, numbers, processes, until)
from dataloader_sets import Numbers, Of
from entry import main
from penstock._dataloader import preloading, servers
from penstock.dataloader import DataLoader
from penstock.errors import SourceError

HERE = pathlib.Path(__file__).resolve().parent


@contextlib.contextmanager
def module_beside(text):
    """A module `lazily` on sys.path, which notes each of its imports."""
    with tempfile.TemporaryDirectory() as folder:
        noted = pathlib.Path(folder, "noted")
        noted.touch()
        pathlib.Path(folder, "lazily.py").write_text(
            "import os\n"
            f"os.write(os.open({str(noted)!r}, os.O_APPEND | os.O_WRONLY), "
            "b'%d\\n' % os.getpid())\n" + textwrap.dedent(text))
        sys.path.insert(0, folder)
        try:
            yield lambda: [int(pid) for pid in noted.read_text().split()]
        finally:
            sys.path.remove(folder)
            servers.stop()  # it has seen the module


class OneOrigin(Case):
    def test_servers_of_all_loaders_come_from_one_process(self):
        loaders = [self.loader(Numbers(6), num_workers=1) for _ in range(3)]
        for loader in loaders:
            self.assertEqual(all_numbers(loader), list(range(6)))
        parents = {processes()[loader._server.child.pid]
                   for loader in loaders}
        self.assertEqual(parents, {servers._origin.process.pid})

    def test_a_killed_origin_ends_loops_and_the_next_one_works(self):
        loader = self.loader(sets.Slow(50, seconds=0.05), num_workers=1)
        loop = iter(loader)
        next(loop)
        servers._origin.process.kill()
        with self.assertRaises(SourceError) as raised:
            list(loop)
        self.assertIn(raised.exception.code,
                      ("workers.died", "workers.server_died"))
        self.assertEqual(numbers(next(iter(loader))), [0])

    def test_it_imports_what_it_is_told_and_never_what_is_excluded(self):
        with module_beside("") as importers:
            servers.stop()
            penstock.start(imports=["lazily"], exclude=["lazily"])
            all_numbers(self.loader(Numbers(2), num_workers=1))
            self.assertEqual(importers(), [])
            penstock.stop()
            penstock.start(imports=["lazily"])
            all_numbers(self.loader(Numbers(2), num_workers=1))
            self.assertEqual(importers(), [servers._origin.process.pid])

    def test_a_loader_lets_it_import_what_its_data_set_needs(self):
        with module_beside("""
                class Mine(list):
                    pass
                """) as importers:
            from lazily import Mine
            loader = self.loader(Mine([1, 2]), num_workers=2)
            for _ in range(2):
                self.assertEqual(all_numbers(loader), [1, 2])
            self.assertEqual(importers(),
                             [os.getpid(), servers._origin.process.pid])
            del sys.modules["lazily"]

    def test_what_a_worker_imported_is_not_imported_by_later_epochs(self):
        with module_beside("") as importers:
            loader = self.loader(Of(8, sets.imports_lazily), num_workers=1)
            all_numbers(loader)
            self.assertTrue(until(lambda: len(importers()) == 3), importers())
            for _ in range(2):
                all_numbers(loader)
            # By that worker, the loader's server, and the origin.
            self.assertEqual(importers()[1:], [
                loader._server.child.pid, servers._origin.process.pid])

    def test_what_the_program_changed_meanwhile_reaches_workers(self):
        servers.origin()
        os.environ["PENSTOCK_TEST_LATER"] = "7"
        try:
            loader = self.loader(Of(1, sets.told_later), num_workers=1)
            self.assertEqual(all_numbers(loader), [7])
        finally:
            del os.environ["PENSTOCK_TEST_LATER"]
        loader = self.loader(Of(1, sets.told_later), num_workers=1)
        self.assertEqual(all_numbers(loader), [-1])

    def test_modules_are_found_by_relative_folders_too(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "lib").mkdir()
            pathlib.Path(folder, "lib", "mine.py").write_text(
                "class Mine(list): pass\n")
            done = subprocess.run(
                [sys.executable, "-B", "-c", textwrap.dedent("""
                import os, sys, penstock
                sys.path.insert(0, "lib")
                import mine
                os.chdir("/")
                print(*penstock.DataLoader(mine.Mine([7]), num_workers=1))
                """)], cwd=folder, capture_output=True, text=True, timeout=60)
        self.assertIn("7", done.stdout, done.stderr)


class Modules(unittest.TestCase):
    def test_what_a_data_set_holds_is_looked_at(self):
        needed = preloading.needed_by([[Numbers(3, inner=Of(3, textwrap.dedent))]])
        self.assertLessEqual({"dataloader_sets", "textwrap"}, set(needed))
        self.assertFalse({name for name in needed
                          if name.startswith("penstock")})

    def test_aliases_of_modules_are_no_names_to_import(self):
        self.assertNotIn("os.path", preloading.imported_here())
        self.assertIn("textwrap", preloading.imported_here())

    def test_a_module_that_fails_is_left_for_who_needs_it(self):
        with module_beside("raise SystemExit(3)") as importers:
            preloader = preloading.Preloader()
            preloader.load(["lazily", "no.such.module"])
            self.assertEqual(importers(), [os.getpid()])

    def test_all_is_searched_for_garbage_again_after_imports(self):
        before = gc.get_threshold()
        with module_beside("import gc\nseldom = gc.get_threshold()"):
            preloading.Preloader().load(["lazily", "no.such.module"])
            seldom = sys.modules.pop("lazily").seldom
        self.assertEqual(seldom[:2], before[:2])
        self.assertGreater(seldom[2], before[2])
        self.assertEqual(gc.get_threshold(), before)

    def test_a_module_may_set_how_seldom_garbage_is_searched_for(self):
        before = gc.get_threshold()
        self.addCleanup(gc.set_threshold, *before)
        with module_beside("import gc\ngc.set_threshold(900, 5, 6)"):
            preloading.Preloader().load(["lazily"])
            del sys.modules["lazily"]
        self.assertEqual(gc.get_threshold(), (900, 5, 6))


class Forked(Case):
    def forked(self, *arguments, **named):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return self.loader(*arguments, multiprocessing_context="fork",
                               **named)

    def test_what_cannot_be_pickled_reaches_workers(self):
        for workers in (1, 2):
            loader = self.forked(Of(10, lambda i: 3 * i), batch_size=4,
                                 num_workers=workers)
            for _ in range(2):
                self.assertEqual(all_numbers(loader), list(range(0, 30, 3)))

    def test_a_changed_data_set_reaches_the_next_loop(self):
        loader = self.forked(Numbers(2), num_workers=1)
        self.assertEqual(all_numbers(loader), [0, 1])
        loader.dataset.n = 3
        self.assertEqual(all_numbers(loader), [0, 1, 2])

    def test_batches_are_those_of_other_workers(self):
        forked, other = (self.loader(
            sets.Drawn(20), batch_size=4, shuffle=True, seed=3, num_workers=2,
            **more) for more in ({"multiprocessing_context": "fork"}, {}))
        for _ in range(2):  # torch is in a forked worker if it is here
            self.assertEqual([batch[1][:, :2].tolist() for batch in forked],
                             [batch[1][:, :2].tolist() for batch in other])

    def test_persistent_workers_are_the_same_processes(self):
        loader = self.forked(Numbers(8), num_workers=2,
                             persistent_workers=True)
        pids = set()
        for _ in range(3):
            loop = iter(loader)
            self.assertEqual([n for b in loop for n in numbers(b)],
                             list(range(8)))
            pids |= set(loop.fetch.pool.pids())
        self.assertEqual(len(pids), 2)

    def test_a_death_is_told(self):
        loader = self.forked(sets.Dies(8, at=3, code=-9), num_workers=1)
        with self.refused(SourceError, "workers.died", "SIGKILL"):
            list(loader)
        loader.dataset.at = None
        self.assertEqual(all_numbers(loader), list(range(8)))

    def test_what_was_printed_is_printed_once(self):
        done = subprocess.run(
            [sys.executable, "-B", "-c", textwrap.dedent("""
            import penstock
            print("once")
            print(*penstock.DataLoader([5, 6], num_workers=2,
                                       multiprocessing_context="fork"))
            """)], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stdout.count("once"), 1, done.stderr)

    def test_a_context_of_multiprocessing_says_it_too(self):
        import multiprocessing
        loader = self.loader(
            Of(4, lambda i: i), num_workers=1,
            multiprocessing_context=multiprocessing.get_context("fork"))
        self.assertEqual(all_numbers(loader), [0, 1, 2, 3])


class Scripts(unittest.TestCase):
    def run_script(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "script.py")
            path.write_text(textwrap.dedent(text))
            return subprocess.run([sys.executable, "-B", str(path)],
                                  capture_output=True, text=True, timeout=60,
                                  cwd=folder)

    UNGUARDED = """
        import os, penstock
        class Mine(list):
            pass
        os.mkdir("out")
        loader = penstock.DataLoader(Mine([1]), num_workers=1{more})
        print(*loader)
        """

    def test_what_runs_twice_is_named_by_its_line(self):
        done = self.run_script(self.UNGUARDED.format(more=""))
        self.assertEqual(done.returncode, 1)
        self.assertIn("script.py, line 5", done.stderr)
        self.assertIn('`os.mkdir("out")`', done.stderr)
        self.assertIn('put all but imports, classes and functions under if '
                      '__name__ == "__main__":', done.stderr)

    def test_each_loader_finds_the_classes_of_the_script(self):
        done = self.run_script("""
            import penstock
            class Mine(list):
                pass
            if __name__ == "__main__":
                for loop in range(3):
                    print(*penstock.DataLoader(Mine([loop]), num_workers=1))
            """)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 3)

    def test_forked_it_needs_no_guard(self):
        done = self.run_script(self.UNGUARDED.format(
            more=', multiprocessing_context="fork"'))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1", done.stdout)


class Timeouts(Case):
    def test_a_timeout_begins_when_a_worker_has_answered(self):
        loader = self.loader(sets.SlowToUnpickle(2), num_workers=1, timeout=1)
        self.assertEqual(all_numbers(loader), [0, 1])

    def test_and_ends_a_loop_then(self):
        loader = self.loader(sets.Hangs(4, at=0), num_workers=1, timeout=1)
        began = time.monotonic()
        with self.refused(SourceError, "workers.timeout"):
            list(loader)
        self.assertGreater(time.monotonic() - began, 1)


class AsTorch(Case):
    def test_getitems_may_give_a_ready_batch(self):
        for workers in (0, 2):
            batch, *_ = self.loader(sets.ReadyBatches(8), batch_size=4,
                                    num_workers=workers)
            self.assertEqual(numbers(batch["x"]), [0, 1, 2, 3])
            self.assertEqual(batch["name"], "0..3")

    def test_a_list_of_another_length_is_refused_without_a_collate_fn(self):
        with self.assertRaisesRegex(ValueError, "asked for 4 items"):
            list(self.loader(sets.ReadyBatches(8, form=list), batch_size=4))
        batches = list(self.loader(sets.ReadyBatches(8, form=list),
                                   batch_size=4, collate_fn=sets.keep))
        self.assertEqual(len(batches), 2)

    def test_collate_fn_can_be_called(self):
        self.assertEqual(numbers(DataLoader(Numbers(2)).collate_fn([4, 5])),
                         [4, 5])
        self.assertEqual(DataLoader(Numbers(2), batch_size=None).collate_fn(
            "text"), "text")

    def test_a_loader_says_what_it_is(self):
        self.assertEqual(
            repr(DataLoader(Numbers(2000), batch_size=64, shuffle=True)),
            "DataLoader(Numbers of 2,000 samples, batch_size=64, "
            "shuffle=True; 32 batches an epoch)")
        self.assertIn("Stream", repr(DataLoader(sets.Stream(4))))


if __name__ == "__main__":
    main()
