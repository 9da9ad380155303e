"""Data sets of the tests that need torch in the workers."""
import random

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info


class Tensors(Dataset):
    def __init__(self, n):
        self.rows = torch.arange(n * 4, dtype=torch.float32).view(n, 4)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i], {"index": i, "name": f"row {i}"}


class Draws(Tensors):
    def __getitem__(self, i):
        return i, torch.rand(2), random.random(), np.random.random()


class Infos(Tensors):
    """What torch's get_worker_info() says."""

    def __getitem__(self, i):
        info = get_worker_info()
        return (info.id, info.num_workers, info.seed, len(info.dataset),
                torch.initial_seed(), torch.get_num_threads())


class Shares(IterableDataset):
    """torch's own example: each worker takes its share of a range."""

    def __init__(self, begin, end):
        self.begin, self.end = begin, end

    def __iter__(self):
        info = get_worker_info()
        if info is None:
            return iter(range(self.begin, self.end))
        per = -(-(self.end - self.begin) // info.num_workers)
        begin = self.begin + info.id * per
        return iter(range(begin, min(begin + per, self.end)))

    def __len__(self):
        return self.end - self.begin


class Convolved(Dataset):
    """Has used the threads of its own process before it travels."""

    def __init__(self):
        self.rows = torch.ones(1, 1, 24_000)
        self[0]

    def __len__(self):
        return 1

    def __getitem__(self, i):
        return torch.nn.functional.conv1d(self.rows, torch.ones(1, 1, 2))


class Writes(Tensors):
    def __getitem__(self, i):
        self.rows[i] = -1
        return self.rows[i].clone()


class Nested(Tensors):
    def __getitem__(self, i):
        return torch.nested.nested_tensor([self.rows[i], self.rows[i][:2]])


class OnGpu(Dataset):
    def __init__(self):
        self.rows = torch.ones(4, device="cuda")

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return self.rows[i]


class Pinnable:
    """A batch of a type of the user's that can be pinned."""

    def __init__(self, items):
        self.rows = torch.stack([row for row, _ in items])

    def pin_memory(self):
        self.rows = self.rows.pin_memory()
        return self


def double(number):
    return 2 * number


def packed(items):
    rows = torch.stack([row for row, _ in items], 1)
    return torch.nn.utils.rnn.pack_padded_sequence(
        rows, torch.tensor([4, 1, 2]), enforce_sorted=False)


def clones(items):
    return [item.clone() for item in items]


def sum_rows(items):
    return sum(row.sum() for row, _ in items)
