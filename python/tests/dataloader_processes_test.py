"""Worker processes: how they end, and that nothing is left of them."""
import contextlib
import gc
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest

import dataloader_sets as sets
from dataloader_case import (Case, all_numbers, descendants, has_cloudpickle,
                             numbers, processes, until)
from dataloader_sets import Dies, Hangs, Numbers, Slow
from entry import main
from penstock.errors import RequestError, SourceError

HERE = pathlib.Path(__file__).resolve().parent


def worker_pids(loop):
    return loop.fetch.pool.pids()


class Deaths(Case):
    def died(self, code, at=5, **more):
        loader = self.loader(Dies(40, at=at, code=code), **{
            "batch_size": 2, "num_workers": 2, **more})
        with self.refused(SourceError, "workers.died") as refused:
            list(loader)
        self.assertIsInstance(refused.error, RuntimeError)  # as torch's
        return str(refused.error)

    def test_a_killed_worker_is_named_with_the_likely_cause(self):
        text = self.died(-signal.SIGKILL)
        self.assertRegex(text, r"worker \(pid \d+\) exited unexpectedly")
        self.assertIn("SIGKILL", text)
        self.assertIn("out-of-memory", text)

    def test_a_crash_names_the_signal(self):
        self.assertRegex(self.died(-signal.SIGSEGV), "SIGSEGV.*faulthandler")

    def test_a_worker_that_exits_names_the_code(self):
        self.assertRegex(self.died(3), "with code 3.*os._exit")

    def test_a_death_while_persistent_and_idle(self):
        loader = self.loader(Numbers(8), batch_size=2, num_workers=2,
                             persistent_workers=True)
        all_numbers(loader)
        pid = worker_pids(loader._iterator)[0]
        os.kill(pid, signal.SIGKILL)
        until(lambda: pid not in processes())
        with self.refused(SourceError, "workers.died", f"pid {pid}",
                          "SIGKILL"):
            all_numbers(loader)
        self.assertEqual(all_numbers(loader), list(range(8)))

    def test_after_a_death_a_new_loop_works(self):
        loader = self.loader(Dies(8, at=3, code=-9), batch_size=2,
                             num_workers=1)
        for _ in range(2):
            with self.refused(SourceError, "workers.died"):
                list(loader)
        loader.dataset.at = None
        self.assertEqual(all_numbers(loader), list(range(8)))

    def test_a_death_of_the_server_is_told_and_leaves_no_worker(self):
        loader = self.loader(Slow(50, seconds=0.05), batch_size=1,
                             num_workers=2)
        loop = iter(loader)
        next(loop)
        workers = worker_pids(loop)
        loader._server.child.kill()
        with self.assertRaises(SourceError) as raised:
            list(loop)
        self.assertIn(raised.exception.code,
                      ("workers.died", "workers.server_died"))
        self.assertTrue(until(lambda: not set(workers) & set(processes())))
        self.assertEqual(numbers(next(iter(loader))), [0])

    def test_after_the_error_the_loop_says_so_again(self):
        loop = iter(self.loader(Dies(8, at=0, code=-9), num_workers=1))
        with self.refused(SourceError, "workers.died"):
            next(loop)
        with self.refused(RequestError, "loader.closed", "ended before"):
            next(loop)


class Hanging(Case):
    def test_a_batch_that_does_not_come_in_time(self):
        loader = self.loader(Hangs(8, at=3), batch_size=2, num_workers=1,
                             timeout=4)
        loop = iter(loader)
        self.assertEqual(numbers(next(loop)), [0, 1])
        began = time.monotonic()
        with self.refused(SourceError, "workers.timeout",
                          "timed out after 4 seconds") as refused:
            next(loop)
        self.assertIsInstance(refused.error, TimeoutError)
        self.assertIsInstance(refused.error, RuntimeError)  # as torch's
        self.assertLess(time.monotonic() - began, 30)

    def test_leaving_does_not_wait_for_a_worker_that_hangs(self):
        loop = iter(self.loader(Hangs(8, at=1), num_workers=1))
        next(loop)
        began = time.monotonic()
        del loop
        self.assertLess(time.monotonic() - began, 20)


class Ends(Case):
    def test_close_ends_everything_at_once(self):
        loader = self.loader(Numbers(1000), num_workers=2,
                             persistent_workers=True)
        loop = iter(loader)
        next(loop)
        loader.close()
        self.assertTrue(until(lambda: not descendants()))
        with self.refused(RequestError, "loader.closed", "ended before"):
            next(loop)

    def test_a_context_manager_closes(self):
        with self.loader(Numbers(1000), num_workers=2) as loader:
            next(iter(loader))
        self.assertTrue(until(lambda: not descendants()))

    def test_a_dropped_loader_ends_its_server(self):
        loop = iter(self.loader(Numbers(50), num_workers=1))
        self._loaders.clear()
        self.assertEqual(numbers(next(loop)), [0])  # the loop holds it
        del loop
        gc.collect()
        self.assertTrue(until(lambda: not descendants()))

    def test_the_end_of_a_loop_ends_its_workers_but_not_the_server(self):
        loader = self.loader(Numbers(10), num_workers=2)
        loop = iter(loader)
        workers = worker_pids(loop)
        for _ in loop:
            pass
        self.assertTrue(until(lambda: not set(workers) & set(processes())))
        server = loader._server.child.pid
        all_numbers(loader)
        self.assertEqual(loader._server.child.pid, server)

    def test_many_loops_leave_no_descriptor(self):
        loader = self.loader(Numbers(6), batch_size=2, num_workers=1)
        all_numbers(loader)
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(10):
            all_numbers(loader)
            next(iter(loader))
        gc.collect()
        self.assertLessEqual(len(os.listdir("/proc/self/fd")), before)

    def test_a_loop_can_end_on_another_thread(self):
        loop = iter(self.loader(Numbers(100), num_workers=1))
        got = []
        thread = threading.Thread(
            target=lambda: got.extend(numbers(next(loop))))
        thread.start()
        thread.join()
        self.assertEqual(got, [0])
        thread = threading.Thread(target=loop.close)
        thread.start()
        thread.join()

    def test_nothing_lies_in_shared_memory_with_a_name(self):
        before = set(os.listdir("/dev/shm"))
        for _ in self.loader(sets.Of(4, sets.big), num_workers=1):
            self.assertEqual(set(os.listdir("/dev/shm")), before)


class Forks(Case):
    def test_a_loop_is_refused_in_a_forked_process(self):
        for workers in (0, 2):
            loader = self.loader(Numbers(20), batch_size=2,
                                 num_workers=workers)
            loop = iter(loader)
            next(loop)
            read, write = os.pipe()
            pid = os.fork()
            if pid == 0:
                try:
                    next(loop)
                except RequestError as error:
                    os.write(write, error.code.encode())
                os._exit(0)
            os.waitpid(pid, 0)
            text = os.read(read, 4096).decode()
            os.close(read), os.close(write)
            self.assertEqual(text, "loader.forked")
            self.assertEqual(sum((numbers(b) for b in loop), []),
                             list(range(2, 20)))  # the parent goes on

    def test_a_forked_process_keeps_its_files_when_a_loop_has_ended(self):
        loop = iter(self.loader(Numbers(4), batch_size=2, num_workers=2))
        self.assertEqual(len(list(loop)), 2)
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(tempfile.TemporaryFile())
                     for _ in range(30)]
            pid = os.fork()
            if pid == 0:
                try:
                    for file in files:
                        os.fstat(file.fileno())
                    os._exit(0)
                finally:
                    os._exit(1)
            self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def test_a_forked_process_can_make_a_loop_of_its_own(self):
        loader = self.loader(Numbers(6), batch_size=2, num_workers=1)
        all_numbers(loader)
        pid = os.fork()
        if pid == 0:
            ok = all_numbers(loader) == list(range(6))
            loader.close()
            os._exit(0 if ok else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        self.assertEqual(all_numbers(loader), list(range(6)))


class Programs(unittest.TestCase):
    """Whole programs, run to their end or interrupted."""

    def start(self, text, name="program.py", **more):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        path = pathlib.Path(self.folder.name, name)
        path.write_text("import sys\n"
                        f"sys.path.insert(0, {str(HERE)!r})\n"
                        "from dataloader_case import DataLoader\n"
                        "from dataloader_sets import *\n"
                        + textwrap.dedent(text))
        return subprocess.Popen(
            [sys.executable, "-B", str(path)], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "PENSTOCK_TEST_TORCH": "off"}, **more)

    def end(self, program, code=0):
        out, err = program.communicate(timeout=60)
        self.assertEqual(program.returncode, code, err)
        return out, err

    def test_a_class_of_the_main_module_is_found_by_its_path(self):
        out, _ = self.end(self.start("""
            class Mine(Rows):
                def __getitem__(self, i):
                    return i * 10
            if __name__ == "__main__":
                print([int(x) for b in DataLoader(Mine(4), num_workers=2)
                       for x in b])
            """))
        self.assertEqual(out, "[0, 10, 20, 30]\n")

    def test_an_exception_class_of_the_main_module_comes_back(self):
        out, _ = self.end(self.start("""
            class Oops(Exception):
                pass
            if __name__ == "__main__":
                try:
                    list(DataLoader(Bad(4, bad={1}, error=Oops),
                                    num_workers=1))
                except Oops as error:
                    print(type(error).__name__)
            """))
        self.assertEqual(out, "Oops\n")

    def test_a_module_beside_the_program_does_not_hide_one_of_pythons(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "socket.py").write_text("oh = no\n")
            out, _ = self.end(self.start("""
                if __name__ == "__main__":
                    print([int(x) for b in DataLoader(Numbers(3),
                                                      num_workers=1)
                           for x in b])
                """, cwd=folder))
        self.assertEqual(out, "[0, 1, 2]\n")

    def test_a_program_may_have_many_arguments(self):
        out, _ = self.end(self.start("""
            class Told(Rows):
                def __getitem__(self, i):
                    return len(sys.argv)
            if __name__ == "__main__":
                sys.argv += [f"the argument {n}" for n in range(20_000)]
                print([int(x) for b in DataLoader(Told(2), num_workers=1,
                                                  timeout=30) for x in b])
            """))
        self.assertEqual(out, "[20001, 20001]\n")

    def test_a_main_module_without_its_guard_is_told(self):
        _, err = self.end(self.start("""
            class Mine(Rows):
                pass
            list(DataLoader(Mine(4), num_workers=1))
            """), code=1)
        self.assertIn('put the loop under: if __name__ == "__main__":', err)

    def test_workers_load_the_engine_only_where_it_is_asked_for(self):
        program = """
            import penstock
            from penstock import DataLoader, get_worker_info

            class Mine(Rows):
                def __getitem__(self, i):
                    {asks}
                    return 10 * get_worker_info().id + (
                        "penstock._engine" in sys.modules)

            if __name__ == "__main__":
                print([int(x) for b in DataLoader(Mine(4), num_workers=1)
                       for x in b])
            """
        for asks, told in (("pass", "[0, 0, 0, 0]\n"),
                           ("penstock.Loader", "[1, 1, 1, 1]\n")):
            with self.subTest(asks):
                out, _ = self.end(self.start(program.format(asks=asks)))
                self.assertEqual(out, told)

    def test_a_class_of_a_session_without_a_file_is_told(self):
        done = subprocess.run(
            [sys.executable, "-B", "-c", textwrap.dedent(f"""
            import sys; sys.path.insert(0, {str(HERE)!r})
            from dataloader_case import DataLoader
            class Mine(list): pass
            list(DataLoader(Mine([1]), num_workers=1))
            """)], capture_output=True, text=True, timeout=60)
        if has_cloudpickle:
            self.assertEqual(done.returncode, 0, done.stderr)
        else:
            self.assertIn("which workers cannot import: a session", done.stderr)

    @unittest.skipIf(has_cloudpickle, "cloudpickle carries it")
    def test_a_class_of_a_main_that_cannot_be_imported_is_told(self):
        program = textwrap.dedent(f"""
            import sys; sys.path.insert(0, {str(HERE)!r})
            from dataloader_case import DataLoader
            class Mine(list): pass
            if __name__ == "__main__":
                list(DataLoader(Mine([1]), num_workers=1))
            """)
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder, "package")
            package.mkdir()
            (package / "__main__.py").write_text(program)
            for arguments, given in ((["package"], None),
                                     (["-m", "package"], None), (["-"], program)):
                done = subprocess.run(
                    [sys.executable, "-B", *arguments], cwd=folder, input=given,
                    capture_output=True, text=True, timeout=60)
                self.assertIn("NotPicklable", done.stderr)
                self.assertIn("which workers cannot import", done.stderr)

    def test_text_that_names_the_main_module_travels_from_a_package(self):
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder, "package")
            package.mkdir()
            (package / "sets.py").write_text("class Programs(list): pass\n")
            (package / "__main__.py").write_text(textwrap.dedent("""
                import penstock
                from package.sets import Programs
                if __name__ == "__main__":
                    kept = Programs(["__main__", 'if __name__ == "__main__":'])
                    print(*penstock.DataLoader(kept, num_workers=1))
                """))
            done = subprocess.run(
                [sys.executable, "-B", "-m", "package"], cwd=folder,
                capture_output=True, text=True, timeout=60)
        self.assertIn("if __name__ ==", done.stdout, done.stderr)

    def test_modules_are_found_where_the_program_is_or_began(self):
        for begins, goes in (".", "/"), ("/", "."):
            with tempfile.TemporaryDirectory() as folder:
                pathlib.Path(folder, "mine.py").write_text(
                    "class Mine(list): pass\n")
                done = subprocess.run(
                    [sys.executable, "-B", "-c", textwrap.dedent("""
                    import os, sys, penstock
                    if sys.argv[1] == "/":
                        import mine
                    os.chdir(sys.argv[1])
                    import mine
                    print(*penstock.DataLoader(mine.Mine([7]), num_workers=1))
                    """), os.path.join(folder, goes)],
                    cwd=os.path.join(folder, begins), capture_output=True,
                    text=True, timeout=60)
            self.assertIn("7", done.stdout, done.stderr)

    def test_ctrl_c_at_any_time_leaves_no_process(self):
        for delay in (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.2):
            with self.subTest(delay=delay):
                program = self.start("""
                    if __name__ == "__main__":
                        try:
                            print("begun", flush=True)
                            while True:
                                loader = DataLoader(
                                    Slow(1000, seconds=0.01), batch_size=4,
                                    num_workers=2, persistent_workers=True)
                                for batch in loader:
                                    pass
                        except KeyboardInterrupt:
                            sys.exit(7)
                    """)
                self.assertEqual(program.stdout.readline(), "begun\n")
                time.sleep(delay)
                inside = descendants(program.pid)
                program.send_signal(signal.SIGINT)
                self.end(program, 7)
                self.assertTrue(until(
                    lambda: not inside & set(processes())))

    def test_a_killed_program_leaves_no_process(self):
        program = self.start("""
            if __name__ == "__main__":
                loop = iter(DataLoader(Busy(1000, seconds=30), num_workers=2))
                print(*loop.fetch.pool.pids(), flush=True)
                next(loop)
            """)
        workers = {int(pid) for pid in program.stdout.readline().split()}
        self.assertEqual(len(workers), 2)
        program.kill()
        self.end(program, -signal.SIGKILL)
        self.assertTrue(until(lambda: not workers & set(processes())))

    def test_the_interpreter_ends_in_any_order(self):
        for text in ("loop = iter(loader); next(loop)",
                     "loop = iter(loader); next(loop); del loader",
                     "import builtins; builtins.kept = iter(loader)",
                     "loop = iter(loader); loop.me = loop; del loop",
                     "loop = iter(loader); batch = next(loop); del loop",
                     "next(iter(loader)); raise SystemExit(0)",
                     "import threading; loop = iter(loader); next(loop); "
                     "threading.Thread(target=lambda: list(loop)).start()"):
            for workers in ("processes", "threads"):
                with self.subTest(text=text, workers=workers):
                    program = self.start(f"""
                        if __name__ == "__main__":
                            loader = DataLoader(Slow(40, seconds=0.002),
                                                batch_size=4, num_workers=2,
                                                workers={workers!r})
                            {text}
                        """)
                    _, err = self.end(program)
                    self.assertEqual(err, "")

    def test_a_few_descriptors_are_enough_to_hold_many_batches(self):
        out, _ = self.end(self.start("""
            if __name__ == "__main__":
                import resource
                resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
                held = list(DataLoader(Of(300, big), num_workers=2))
                print(all((batch[0] == i).all()
                          for i, batch in enumerate(held)))
            """))
        self.assertEqual(out, "True\n")

    def test_an_error_while_large_tasks_wait_ends_the_program(self):
        program = self.start("""
            if __name__ == "__main__":
                ids = ["x" * 100_000] * 10
                loop = iter(DataLoader(dict.fromkeys(ids, 1), num_workers=2,
                                       batch_sampler=[ids] * 500,
                                       prefetch_factor=200))
                for batch in loop:
                    raise ValueError("mine")
            """)
        _, err = self.end(program, 1)
        self.assertIn("ValueError: mine", err)
        self.assertNotIn("ignored", err)

    def test_an_error_that_is_not_caught_ends_the_program(self):
        program = self.start("""
            if __name__ == "__main__":
                for batch in DataLoader(Slow(400, seconds=0.01),
                                        num_workers=2):
                    raise ValueError("mine")
            """)
        _, err = self.end(program, 1)
        self.assertIn("ValueError: mine", err)
        self.assertNotIn("ignored", err)


if __name__ == "__main__":
    main()
