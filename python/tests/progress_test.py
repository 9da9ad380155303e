"""What a person sees of a loop: a line, tqdm's bar, a notebook's page."""
import html.parser
import io
import os
import pathlib
import pty
import re
import sys
import time
import unittest
from unittest import mock

import penstock
from entry import main
from penstock import notebook
from penstock.progress import Screen, shown
from positions import Case, has, run_python

LINE = (r"ep \d+(/\d+)? \d+/\d+ [█░]{5,20} \[\d\d:\d\d<(\d\d:\d\d|--:--)\] [\d.]+ it/s \| "
        r"AU (\d+ %|n/a)( <-( (data|host|copy) \d+ %)+)? \| VRAM n/a RAM .*")


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    time = 0.0

    def __call__(self):
        return self.time


class StandingTime:
    """A module `time` whose clock only moves when the loop sleeps."""
    def __init__(self):
        self.now = 0.0

    def sleep(self, seconds):
        self.now += seconds

    def perf_counter(self):
        return self.now

    monotonic = process_time = perf_counter


class OnScreen(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()

    def show(self, file, texts, seconds=0.1):
        """A step takes so long; returns what was written."""
        texts = iter(texts)
        for _ in shown(list(texts), lambda columns: f"line {self.clock.time:.1f}",
                       Screen(file, self.clock)):
            self.clock.time += seconds
        return file.getvalue()

    def test_a_terminals_line_is_redrawn_four_times_a_second(self):
        told = self.show(Terminal(), range(100))
        lines = told.split("\r")[1:]
        self.assertLessEqual(len(lines), 10 * 4 + 1)
        self.assertGreater(len(lines), 30)
        self.assertEqual(lines[-1], "line 10.0\n")

    def test_elsewhere_a_plain_line_comes_every_30_seconds(self):
        self.assertEqual(self.show(io.StringIO(), range(700)),
                         "line 30.0\nline 60.0\n")

    def test_a_short_loop_elsewhere_says_nothing(self):
        self.assertEqual(self.show(io.StringIO(), range(10)), "")

    def test_a_shorter_line_covers_the_longer_one(self):
        screen = Screen(file := Terminal(), self.clock)
        screen.show("a long line")
        screen.show("short")
        screen.end("")
        self.assertEqual(file.getvalue(), "\ra long line\rshort      \n")

    def test_a_line_that_is_too_long_is_cut(self):
        with mock.patch("penstock.progress._width", return_value=10):
            screen = Screen(file := Terminal(), self.clock)
            screen.show("0123456789abc")
        self.assertEqual(file.getvalue(), "\r012345678")

    def test_a_loop_that_is_left_ends_the_line(self):
        screen = Screen(file := Terminal(), self.clock)
        for number in shown(range(9), lambda columns: "line", screen):
            self.clock.time += 1
            if number == 2:
                break
        self.assertEqual(file.getvalue(), "\rline\rline\n")

    def test_a_file_that_fails_ends_the_line_and_not_the_loop(self):
        class Full(Terminal):
            writes = 0

            def write(self, text):
                self.writes += 1
                raise OSError("no space")
        closed = Terminal()
        closed.close()
        for file in (full := Full(), closed, None):
            with mock.patch.object(sys, "stderr", None):
                screen = Screen(file, self.clock)
                taken = 0
                for _ in shown(range(9), lambda columns: "line", screen):
                    self.clock.time += 60
                    taken += 1
            self.assertEqual(taken, 9)
        self.assertEqual(full.writes, 1)

    def test_a_notebook_is_redrawn(self):
        class Stream(io.StringIO):
            pass
        Stream.__module__ = "ipykernel.iostream"
        self.assertIn("\rline", self.show(Stream(), range(10)))


class Lines(Case):
    def lines(self, loop, sleep=time.sleep):
        file = Terminal()
        with mock.patch("penstock.progress._width", return_value=200), \
                mock.patch("penstock.progress._REDRAWN_S", 0):
            for _ in loop(file):
                sleep(0.11)
        text = file.getvalue()
        self.assertTrue(text.startswith("\r") and text.endswith("\n"), text)
        return [line.rstrip() for line in text[1:-1].split("\r")]

    def test_it_says_how_the_loop_goes(self):
        loader = self.open()
        lines = self.lines(lambda file: loader.progress(file=file))
        for line in lines[2:]:  # the first step is not timed
            self.assertRegex(line, LINE)
        self.assertTrue(lines[-1].startswith(f"ep 1 9/{len(loader)} {20 * '█'} ["))
        share = int(re.search(r"AU (\d+) %", lines[-1])[1])
        self.assertGreater(share, 50)

    def test_it_fits_the_terminal_with_a_bar(self):
        for loader in (self.open(), penstock.DataLoader(list(range(20)),
                                                        batch_size=4)):
            file = Terminal()
            with mock.patch("penstock.progress._width", return_value=80), \
                    mock.patch("penstock.progress._REDRAWN_S", 0):
                for _ in loader.progress(file=file):
                    time.sleep(0.11)
            last = file.getvalue().rstrip().split("\r")[-1]
            self.assertRegex(last, r"^ep 1 (\d)/\1 █{5,20} \[.* it/s \| AU ")
            self.assertLess(len(last), 80)
            plain = io.StringIO()
            with mock.patch("penstock.progress._PLAIN_S", 0):
                for _ in loader.progress(file=plain):
                    time.sleep(0.01)
            self.assertNotIn("█", plain.getvalue())
            self.assertIn(" CPU ", plain.getvalue())

    def test_the_time_left_is_of_all_epochs(self):
        loader = self.open()
        list(loader)
        lines = self.lines(lambda file: penstock.progress(
            loader, epochs=11, file=file))
        self.assertRegex(lines[-1], LINE)
        left, rate = re.search(r"^ep 2/11 9/9 .*<00:(\d\d)\] ([\d.]+) it/s",
                               lines[-1]).groups()
        self.assertAlmostEqual(int(left), 9 * 9 / float(rate), delta=1)

    def test_any_number_of_steps_can_be_shown(self):
        loader = self.open()
        lines = self.lines(lambda file: loader.progress(3, file=file),
                           lambda seconds: None)
        self.assertRegex(lines[-1], r"^ep 1 3/9 █{6}░{14} \[00:00<00:00\]")
        self.assertEqual(loader.state_dict()["step"], 3)

    def test_the_batches_are_those_of_the_loop(self):
        shown = [b.ids.tolist() for b in self.open().progress(
            file=io.StringIO())]
        self.assertEqual(shown, [b.ids.tolist() for b in self.open()])

    def test_the_drop_in_has_one_too(self):
        clock = StandingTime()
        with mock.patch("penstock._dataloader.meter.time", clock), \
                mock.patch("penstock._dataloader.line.time", clock):
            loader = penstock.DataLoader(list(range(40)), batch_size=4)
            lines = self.lines(lambda file: penstock.progress(
                loader, epochs=2, file=file), clock.sleep)
        self.assertRegex(lines[-1], LINE)
        self.assertRegex(lines[-1], r"^ep 1/2 10/10 █{20} \[00:01<00:01\]")
        self.assertIn("AU 100 %", lines[-1])
        self.assertEqual(loader.shares(), "AU 100 %")

    def test_a_stream_without_a_length_has_a_line_without_one(self):
        class Stream:
            def __iter__(self):
                return iter(range(4))
        loader = penstock.DataLoader(Stream(), batch_size=2)
        lines = self.lines(lambda file: loader.progress(file=file),
                           lambda seconds: None)
        self.assertRegex(lines[-1], r"^ep 1 2 \[00:00<--:--\]")

    def test_the_shares_are_those_of_the_line(self):
        loader = self.open()
        self.assertEqual(loader.shares(), "AU n/a")
        for _ in loader:
            time.sleep(0.002)
        self.assertRegex(loader.shares(), r"^AU \d+ %")

    def test_a_real_terminal_shows_it(self):
        primary, secondary = pty.openpty()
        pid = os.fork()
        if pid == 0:
            os.dup2(secondary, 2)
            package = str(pathlib.Path(penstock.__file__).parent.parent)
            os.execve(sys.executable, [
                sys.executable, "-c",
                f"import penstock, time\nfor batch in penstock.open("
                f"{str(self.path)!r}).progress(): time.sleep(0.05)"],
                {**os.environ, "PYTHONPATH": os.pathsep.join(
                    filter(None, [package, os.environ.get("PYTHONPATH")]))})
        os.close(secondary)
        told = b""
        try:
            while piece := os.read(primary, 4096):
                told += piece
        except OSError:
            pass  # its other end is closed
        os.close(primary)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertRegex(told.decode(), r"\rep 1 9/9 █+ \[")


class Bars(Case):
    """tqdm, and what is like it."""

    def test_a_loader_has_a_length_and_iterates_anew(self):
        loader = self.open()
        self.assertEqual([len(list(iter(loader))) for _ in range(2)],
                         [len(loader)] * 2)

    @unittest.skipUnless(has("tqdm"), "tqdm is not installed")
    def test_tqdm_shows_the_shares_behind_its_bar(self):
        done = run_python(
            "import time, penstock\nfrom tqdm import tqdm\n"
            f"loader = penstock.open({str(self.path)!r})\n"
            "bar = tqdm(loader, mininterval=0)\n"
            "for batch in bar:\n"
            "    time.sleep(0.01)\n"
            "    bar.set_postfix_str(loader.shares(), refresh=False)\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"9/9 .*it/s, AU \d+ %")


class Page(html.parser.HTMLParser):
    """Fails on a tag that is not closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], set(), ""
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text += data


class Notebooks(Case):
    PLAIN = {"div", "b", "br", "table", "tr", "th", "td", "span"}

    def page(self, thing):
        text = thing if isinstance(thing, str) else thing._repr_html_()
        page = Page(text)
        self.assertLessEqual(page.tags, self.PLAIN)
        self.assertNotIn("http", text)
        self.assertLess(len(text), 4096)
        return page.text

    def test_a_verdict_has_its_reason_and_its_shares(self):
        loader = self.open()
        for _ in loader:
            time.sleep(0.001)
        verdict = loader.explain()
        text = self.page(verdict)
        for part in (verdict.limit, verdict.cause, verdict.because, "compute"):
            self.assertIn(part, text)

    def test_a_verdict_shows_what_to_change(self):
        verdict = self.open().explain()
        verdict.actions = [{"knob": "loader.workers", "from": 1, "to": 2,
                            "predicted_gain": 0.5, "cost": "a processor"}]
        self.assertIn("loader.workers1 to 2: predicted 50 % faster; costs a "
                      "processor", self.page(verdict))

    def test_what_comes_from_elsewhere_is_escaped(self):
        verdict = self.open().explain()
        verdict.cause = "<script>alert('&')</script>"
        verdict.parts = {"<i>": 0.5}
        verdict.actions = [{"knob": "<b>", "from": "<", "to": ">",
                            "predicted_gain": 1, "cost": "<img>"}]
        self.assertIn(verdict.cause, self.page(verdict))
        self.assertIn("<i>", self.page(notebook.loader_html("<<i> x>", None)))

    def test_a_loader_says_what_it_reads(self):
        loader = self.open()
        text = self.page(loader)
        for part in ("penstock.Loader: 9 steps per epoch, next is step 0 "
                     "of epoch 0", "ram", "cpu", "n/a"):
            self.assertIn(part, text)
        list(loader)
        self.assertIn("epoch 1", repr(loader))

    def test_a_loader_that_was_closed_says_so(self):
        loader = self.loader()
        loader.close()
        self.assertEqual(repr(loader), "<penstock.Loader: the loader was closed>")
        self.assertEqual(self.page(loader),
                         "penstock.Loader: the loader was closed")


if __name__ == "__main__":
    main()
