"""The data set of dataloader.py: plain Python, without torch."""
import time

import numpy as np


class Busy:
    """An item takes so many seconds of one processor, in Python."""

    def __init__(self, n, seconds):
        self.n, self.seconds = n, seconds
        self.row = np.arange(4096, dtype=np.float32)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        until = time.thread_time() + self.seconds
        while time.thread_time() < until:
            pass
        return self.row + i, i
