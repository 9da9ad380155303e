"""What the device is, and its faster arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
else:
    from .late_torch import torch


def device_info(device: str | int | torch.device | None = None
                ) -> dict[str, Any]:
    """The device that torch computes on: "kind", "name", "torch", and on a GPU
    "index", "capability", "memory_bytes", "free_bytes", "multiprocessors",
    "cuda" (of torch), "bfloat16", "tf32". None where torch does not report it.
    Without an argument the current GPU, else the host."""
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    at = torch.device(device)
    found: dict[str, Any] = {"kind": at.type, "torch": torch.__version__}
    if at.type != "cuda":
        return {**found, "name": _processor(),
                "threads": torch.get_num_threads()}
    index = torch.cuda.current_device() if at.index is None else at.index
    facts = torch.cuda.get_device_properties(index)
    free, total = torch.cuda.mem_get_info(index)
    return {**found, "name": facts.name, "index": index,
            "capability": f"{facts.major}.{facts.minor}",
            "memory_bytes": total, "free_bytes": free,
            "multiprocessors": facts.multi_processor_count,
            "cuda": torch.version.cuda,
            "bfloat16": torch.cuda.is_bf16_supported(),
            "tf32": facts.major >= 8}


def fast_math() -> dict[str, bool]:
    """Switches on what computes faster and slightly less exactly: TensorFloat-32
    for float32 products, cuDNN's choice of the fastest algorithm, and fused
    attention. Returns by name what is in effect afterwards: "tf32",
    "cudnn_benchmark", "flash_attention", "memory_efficient_attention". All are
    False without a GPU."""
    gpu = torch.cuda.is_available()
    if gpu:
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.allow_tf32 = True
        torch.backends.cudnn.benchmark = True
        torch.backends.cuda.enable_flash_sdp(True)
        torch.backends.cuda.enable_mem_efficient_sdp(True)
    return {"tf32": gpu and torch.cuda.get_device_capability()[0] >= 8
            and torch.get_float32_matmul_precision() == "high",
            "cudnn_benchmark": gpu and torch.backends.cudnn.benchmark,
            "flash_attention": gpu and torch.backends.cuda.flash_sdp_enabled(),
            "memory_efficient_attention":
                gpu and torch.backends.cuda.mem_efficient_sdp_enabled()}


def _processor() -> str | None:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return None
