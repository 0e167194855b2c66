"""The NVIDIA devices of this machine, as nvidia-smi lists them, and which of them this process may use."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

VISIBLE = "CUDA_VISIBLE_DEVICES"
ORDER = "CUDA_DEVICE_ORDER"
_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Gpu:
    """One device. `index` as CUDA counts by bus, `mark` what CUDA_VISIBLE_DEVICES calls it here. `memory_used_mib` is None
    where the device reports none, as those do that share the host's memory; `name` is empty for a slice (MIG)."""

    index: str
    uuid: str
    name: str
    memory_used_mib: int | None = None
    mark: str = ""


def query(*fields: str) -> list[list[str]]:
    """One row a device; [] where nvidia-smi is missing, fails or finds none."""
    if shutil.which("nvidia-smi") is None:
        return []
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        output = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    rows = ([value.strip() for value in line.split(",")] for line in output.splitlines())
    return [row for row in rows if len(row) == len(fields)]


def found() -> list[Gpu]:
    """All devices that the driver shows, in the order of their indices."""
    return [
        Gpu(index, uuid, name, int(used) if used.isdigit() else None, index)
        for index, uuid, name, used in query("index", "uuid", "name", "memory.used")
    ]


def visible(gpus: Iterable[Gpu], environment: Mapping[str, str]) -> list[Gpu]:
    """Those that CUDA_VISIBLE_DEVICES leaves, in its order; all without it. As in CUDA, the list ends at the first entry that
    names no device."""
    listed = list(gpus)
    if VISIBLE not in environment:
        return listed
    chosen: list[Gpu] = []
    for entry in environment[VISIBLE].split(","):
        gpu = _named(entry.strip(), listed)
        if gpu is None:
            break
        chosen.append(gpu)
    return chosen


def _named(entry: str, gpus: list[Gpu]) -> Gpu | None:
    if entry.startswith("MIG-"):
        return Gpu("", entry, "", mark=entry)
    for gpu in gpus:
        if gpu.index == entry or (entry.startswith("GPU-") and gpu.uuid.startswith(entry)):
            return Gpu(gpu.index, gpu.uuid, gpu.name, gpu.memory_used_mib, entry)
    return None
