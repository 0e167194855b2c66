"""Whether this machine is the one that a config names and can give what a server asks for: looked at before the start."""

from __future__ import annotations

import re
from collections.abc import Sequence

from scripts.lib.endpoint import Failure
from scripts.lib.gpus import Gpu
from scripts.lib.launch import DeviceRequest

HOST_RESERVE_GIB = 2.0
"""What the host itself and the client need beside a server that takes its share of the same memory."""


def of_devices(request: DeviceRequest, gpus: Sequence[Gpu]) -> Failure | None:
    """Why the server must not start on `gpus`, those that this process may use; None when nothing speaks against it.

    A machine without any NVIDIA device passes when the hardware names none: others may serve there.
    """
    wanted, place = request.nvml_name, f"config/hardware/{request.hardware}.yaml"
    if wanted is not None and request.gpus:
        if not gpus:
            cause = f"hardware {request.hardware} is a {wanted}, but nvidia-smi shows no device that may be used here"
            return _failure("mislabelled", cause, "run this on that machine, or look at CUDA_VISIBLE_DEVICES")
        others = sorted({gpu.name for gpu in gpus if gpu.name and not is_named(gpu.name, wanted)})
        if others:
            cause = f"hardware {request.hardware} is a {wanted}, but this machine has: {', '.join(others)}"
            remedy = f"name the hardware that is there, or correct nvml_name in {place}"
            return _failure("mislabelled", cause, remedy)
    if gpus and request.gpus > len(gpus):
        cause = f"the server's parallel sizes make {request.gpus} GPUs, and {len(gpus)} may be used here"
        return _failure("infeasible", cause, "lower the parallel sizes, or look at CUDA_VISIBLE_DEVICES")
    return None


def is_named(name: str, wanted: str) -> bool:
    """Whether a device's name has `wanted` as a word: a GH200 is no H200."""
    return re.search(rf"(?<![A-Za-z0-9]){re.escape(wanted)}(?![A-Za-z0-9])", name, re.IGNORECASE) is not None


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
