"""pytest in place of `python NAME_test.py`: `pytest -k "not gpu"` leaves out what
needs a GPU, and without one is skipped."""
import pytest

GPU_FILES = {"cuda_torch_test", "dataloader_pinning_test"}


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.stem in GPU_FILES:
            item.add_marker(pytest.mark.gpu)
