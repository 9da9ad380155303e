"""penstock.Monitor: what the machine does beside a program."""

import threading
import time
import unittest

import penstock
from entry import main


class Monitoring(unittest.TestCase):
    def test_samples_while_the_block_runs(self):
        before = threading.active_count()
        with penstock.Monitor(0.05, gpus="none") as monitor:
            end = time.time() + 0.4
            while time.time() < end:
                pass
        self.assertEqual(threading.active_count(), before)
        summary = monitor.summary()
        self.assertGreater(summary["samples"], 2)
        self.assertGreater(
            summary["metrics"]["process.cpu_percent"]["mean"], 10)
        self.assertLessEqual(summary["metrics"]["cpu_percent"]["max"], 100.01)
        self.assertTrue(summary["assessment"])

    def test_runs_again_and_once_at_a_time(self):
        monitor = penstock.Monitor(0.05, gpus="synthetic")
        for _ in range(2):
            with monitor:
                with self.assertRaisesRegex(RuntimeError, "already"):
                    monitor.__enter__()
        self.assertTrue(monitor.summary()["synthetic_gpu"])
        self.assertIn("gpu0.utilisation_percent", monitor.sample())

    def test_ends_with_its_block_when_that_raises(self):
        with self.assertRaises(KeyError):
            with penstock.Monitor(0.05, gpus="none"):
                raise KeyError
        self.assertFalse([thread for thread in threading.enumerate()
                          if thread.name == "penstock-monitor"])

    def test_says_what_is_wrong(self):
        with self.assertRaisesRegex(ValueError, "more than 0"):
            penstock.Monitor(0)
        with self.assertRaisesRegex(ValueError, "synthetic"):
            penstock.Monitor(gpus="two")
        with self.assertRaisesRegex(penstock.RequestError, "2147483632"):
            penstock.Monitor(pid=2147483632)


if __name__ == "__main__":
    main()
