"""Whether this machine is the one that a config names and can give what a server asks for: looked at before the start."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from scripts.lib.endpoint import Failure
from scripts.lib.gpus import SLICE, Gpu
from scripts.lib.launch import DeviceRequest

HOST_RESERVE_GIB = 2.0
"""What the host itself and the client need beside a server that takes its share of the same memory."""


def of_devices(request: DeviceRequest, gpus: Sequence[Gpu]) -> Failure | None:
    """Why the server must not start on `gpus`, those that this process may use; None when nothing speaks against it.

    A machine without any NVIDIA device passes when the hardware names none: others may serve there.
    """
    wanted, place = request.nvml_name, f"config/hardware/{request.hardware}.yaml"
    fit = fitting(request, gpus)
    if wanted is not None and request.gpus and not fit:
        if not gpus:
            cause = f"hardware {request.hardware} is a {wanted}, but nvidia-smi shows no device that may be used here"
            return _failure("mislabelled", cause, "run this on that machine, or look at CUDA_VISIBLE_DEVICES")
        others = sorted({gpu.name or gpu.mark for gpu in gpus})
        cause = f"hardware {request.hardware} is a {wanted}, but this machine has: {', '.join(others)}"
        remedy = f"name the hardware that is there, or correct nvml_name in {place}"
        return _failure("mislabelled", cause, remedy)
    if gpus and request.gpus > len(fit):
        cause = f"the server's parallel sizes make {request.gpus} GPUs, and {len(fit)} may be used here"
        return _failure("infeasible", cause, "lower the parallel sizes, or look at CUDA_VISIBLE_DEVICES")
    if request.gpus > 1 and any(gpu.uuid.startswith(SLICE) for gpu in fit):
        cause = f"the server's parallel sizes make {request.gpus} GPUs, and a process sees one slice (MIG) at most"
        return _failure(
            "infeasible", cause, "lower the parallel sizes, or give whole GPUs in CUDA_VISIBLE_DEVICES"
        )
    return None


def fitting(request: DeviceRequest, gpus: Sequence[Gpu]) -> list[Gpu]:
    """Those that are what the hardware file names: a machine may have a small one for its screen as well."""
    return [gpu for gpu in gpus if request.nvml_name is None or is_named(gpu.name, request.nvml_name)]


def is_named(name: str, wanted: str) -> bool:
    """Whether a device's name has `wanted` as a word: a GH200 is no H200. A slice (MIG) is not its GPU, and is meant where `wanted`
    says MIG too."""
    word = rf"(?<![A-Za-z0-9]){re.escape(wanted)}(?![A-Za-z0-9])"
    return re.search(word, name, re.IGNORECASE) is not None and (" MIG " in name) == ("MIG" in wanted)


def ahead(requests: Mapping[str, DeviceRequest], look: Callable[[], Sequence[Gpu]]) -> list[str]:
    """What will keep servers (by label) from starting on this machine, one line for each cause, told before anything is built or
    pulled for them. `look` lists its devices."""
    if not any(request.gpus for request in requests.values()):
        return []
    gpus = look()
    failed = [failure for request in requests.values() if (failure := of_devices(request, gpus))]
    counts = Counter(f"{failure.cause}; {failure.fix}" for failure in failed)
    return [f"{count} of {len(requests)} servers will not start: {words}" for words, count in counts.items()]


def of_memory(request: DeviceRequest, total_gib: float | None, available_gib: float | None) -> Failure | None:
    """Why a server must not take its share of memory that the CPU uses as well: the host would hang for want of it, and take
    the run with it. `total_gib` and `available_gib` are the operating system's, since the device reports none.
    """
    if not request.unified_memory or None in (request.memory_share, total_gib, available_gib):
        return None
    asked = request.memory_share * total_gib
    if asked <= available_gib - HOST_RESERVE_GIB:
        return None
    cause = (
        f"the server would take {request.memory_share:g} of {total_gib:.1f} GiB = {asked:.1f} GiB, but {available_gib:.1f} GiB "
        f"are available and the host needs {HOST_RESERVE_GIB:g} of them (CPU and GPU share the memory)"
    )
    return _failure("resource_start", cause, "end what else uses memory, or lower the server's share of it")


def _failure(failure_class: str, cause: str, remedy: str) -> Failure:
    """Worth another try: the next run may be on another machine, or this one less busy."""
    return Failure(failure_class, cause, "startup", retry=True, fix=remedy)
