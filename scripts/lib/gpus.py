"""The NVIDIA devices of this machine, as nvidia-smi lists them, and which of them this process may use."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

VISIBLE = "CUDA_VISIBLE_DEVICES"
ORDER = "CUDA_DEVICE_ORDER"
SLICE = "MIG-"
"""How the UUID of a part of a GPU begins."""
_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Gpu:
    """One device. `index` as CUDA counts by bus, `mark` what CUDA_VISIBLE_DEVICES calls it here. `memory_used_mib` is None
    where the device reports none, as those do that share the host's memory. Of a slice (MIG) `name` has MIG and its size at the end,
    and neither index nor memory is known."""

    index: str
    uuid: str
    name: str
    memory_used_mib: int | None = None
    mark: str = ""


def query(*fields: str) -> list[list[str]]:
    """One row a device; [] where nvidia-smi is missing, fails or finds none."""
    rows = (
        [value.strip() for value in line.split(",")]
        for line in _smi(f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits")
    )
    return [row for row in rows if len(row) == len(fields)]


def _smi(*options: str) -> list[str]:
    """What nvidia-smi prints, by lines; [] where it is missing or fails."""
    if shutil.which("nvidia-smi") is None:
        return []
    try:
        return subprocess.run(
            ["nvidia-smi", *options], capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
        ).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return []


def found() -> list[Gpu]:
    """All devices that the driver shows, in the order of their indices."""
    return [
        Gpu(index, uuid, name, int(used) if used.isdigit() else None, index)
        for index, uuid, name, used in query("index", "uuid", "name", "memory.used")
    ]


def visible(gpus: Iterable[Gpu], environment: Mapping[str, str]) -> list[Gpu]:
    """Those that CUDA_VISIBLE_DEVICES leaves, in its order; all without it. As in CUDA, the list ends at the first entry that
    names no device, or one that it has already."""
    listed = list(gpus)
    if VISIBLE not in environment:
        return listed
    chosen: list[Gpu] = []
    for entry in environment[VISIBLE].split(","):
        gpu = _named(entry.strip(), listed)
        if gpu is None or gpu.uuid in {taken.uuid for taken in chosen}:
            break
        chosen.append(gpu)
    return chosen


def _named(entry: str, gpus: list[Gpu]) -> Gpu | None:
    if entry.startswith(SLICE):
        return Gpu("", entry, _slice_name(entry), mark=entry)
    for gpu in gpus:
        if gpu.index == entry:
            return gpu
        if entry.startswith("GPU-") and gpu.uuid.startswith(entry):
            return replace(gpu, mark=gpu.uuid)  # whole: CUDA takes the start of one, vLLM and docker do not
    return None


def _slice_name(uuid: str) -> str:
    """What NVML calls a slice: its GPU's name, then the slice's own. Empty where nvidia-smi does not list it."""
    gpu = ""
    for line in _smi("-L"):
        if found := re.match(r"GPU \d+: (.+) \(UUID", line):
            gpu = found[1]
        elif (found := re.match(r"\s+(MIG \S+)", line)) and uuid in line:
            return f"{gpu} {found[1]}"
    return ""
