"""The numbers of this machine that the page and /metrics show."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from typing import Any

from .configuration import Configuration

_GPU_FIELDS = ("index", "name", "utilization.gpu", "memory.used",
               "memory.total", "temperature.gpu")
_KEPT_S = 2.0
_gpus: tuple[float, list[dict[str, Any]]] = (-1e9, [])


def numbers(configuration: Configuration) -> dict[str, Any]:
    """Of processors, memory, the disk of the runs, and GPUs."""
    memory = _memory()
    return {"cpus": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0],
            "memory_bytes": memory.get("MemTotal", 0),
            "memory_free_bytes": memory.get("MemAvailable", 0),
            "disk_free_bytes": shutil.disk_usage(configuration.runs).free,
            "gpus": _gpu_numbers(configuration)}


def _memory() -> dict[str, int]:
    found = {}
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            name, _, value = line.partition(":")
            found[name] = int(value.split()[0]) << 10
    return found


def _gpu_numbers(configuration: Configuration) -> list[dict[str, Any]]:
    """By nvidia-smi, at most every few seconds."""
    global _gpus
    if not configuration.gpus:
        return []
    at, found = _gpus
    if time.monotonic() - at < _KEPT_S:
        return found
    try:
        said = subprocess.run(
            ["nvidia-smi", f"--query-gpu={','.join(_GPU_FIELDS)}",
             "--format=csv,noheader,nounits"], capture_output=True, text=True,
            timeout=5, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        said = ""
    found = [_gpu(line) for line in said.splitlines() if line.strip()]
    _gpus = (time.monotonic(), found)
    return found


def _gpu(line: str) -> dict[str, Any]:
    index, name, busy, used, total, warm = (
        part.strip() for part in line.split(","))
    return {"index": _number(index), "name": name,
            "utilisation_percent": _number(busy),
            "memory_used_mib": _number(used),
            "memory_total_mib": _number(total), "temperature_c": _number(warm)}


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:  # "[N/A]"
        return None


def prometheus(configuration: Configuration, counts: dict[str, int],
               running: list[dict[str, Any]]) -> str:
    """The text of /metrics."""
    machine = numbers(configuration)
    lines = ["# HELP penstock_jobs Jobs by status.",
             "# TYPE penstock_jobs gauge"]
    lines += [f'penstock_jobs{{status="{status}"}} {count}'
              for status, count in counts.items()]
    lines += ["# TYPE penstock_slots gauge",
              f"penstock_slots {configuration.slots}",
              "# TYPE penstock_disk_free_bytes gauge",
              f"penstock_disk_free_bytes {machine['disk_free_bytes']}",
              "# TYPE penstock_memory_free_bytes gauge",
              f"penstock_memory_free_bytes {machine['memory_free_bytes']}"]
    for name in ("steps_taken", "loss", "au", "samples_per_s",
                 "resident_bytes", "device_bytes"):
        values = [(job["id"], job["progress"].get(name)) for job in running]
        values = [(id, value) for id, value in values
                  if isinstance(value, (int, float))]
        if values:
            lines.append(f"# TYPE penstock_job_{name} gauge")
            lines += [f'penstock_job_{name}{{job="{id}"}} {value}'
                      for id, value in values]
    return "\n".join(lines) + "\n"
