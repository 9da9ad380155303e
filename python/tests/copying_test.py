"""What copies to a GPU cost, over a torch that is made up."""
import sys
import types
import unittest
from unittest import mock

from entry import main
from penstock._watch.copying import measured_copies


class Tensor:
    def __init__(self, cuda, ms, pinned=False, where="cpu"):
        self.cuda_, self.ms, self.pinned = cuda, ms, pinned
        self.device = types.SimpleNamespace(type=where)

    def is_pinned(self):
        return self.pinned

    def pin_memory(self):
        return Tensor(self.cuda_, self.ms / 4, pinned=True)

    def cuda(self, non_blocking):
        self.cuda_.time += self.ms / 1000


class Cuda:
    """Of torch; time passes by what is copied."""

    def __init__(self, initialized=True, capturing=False):
        self.time = 0.0
        self.is_initialized = lambda: initialized
        self.is_current_stream_capturing = lambda: capturing
        self.synchronize = lambda: None

    def measured(self, batch):
        with mock.patch.dict(sys.modules, {
                "torch": types.SimpleNamespace(cuda=self)}), \
                mock.patch("time.perf_counter", lambda: self.time):
            return measured_copies(batch)


class Copies(unittest.TestCase):
    def test_are_measured_both_ways(self):
        cuda = Cuda()
        cost = cuda.measured({"x": Tensor(cuda, 8), "y": [Tensor(cuda, 4)]})
        self.assertAlmostEqual(cost.pageable_s, 0.012)
        self.assertAlmostEqual(cost.pinned_s, 0.003)

    def test_of_what_is_pinned_or_there_already_are_not(self):
        cuda = Cuda()
        for tensor in (Tensor(cuda, 8, pinned=True),
                       Tensor(cuda, 8, where="cuda")):
            self.assertIsNone(cuda.measured((tensor, "text", 3)))

    def test_are_not_made_without_a_gpu_nor_into_a_graph(self):
        for cuda in (Cuda(initialized=False), Cuda(capturing=True)):
            self.assertIsNone(cuda.measured([Tensor(cuda, 8)]))

    def test_for_which_there_is_no_room_are_no_reason_to_end_a_loop(self):
        cuda = Cuda()
        full = Tensor(cuda, 8)
        full.pin_memory = mock.Mock(side_effect=RuntimeError("out of memory"))
        self.assertIsNone(cuda.measured([full]))


if __name__ == "__main__":
    main()
