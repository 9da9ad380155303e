"""What the results of peers have in common, and with other benchmarks."""
import pathlib
import platform
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from result import (ROOT, machine_of, print_result,  # noqa: E402, F401
                    processor, processor_seconds, spread)


def torch_machine():
    """The machine of a loop of torch."""
    import torch

    return {"processor": platform.processor() or platform.machine(),
            "python": platform.python_version(), "torch": torch.__version__,
            "torch_threads": torch.get_num_threads()}
