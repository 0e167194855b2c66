"""From a resolved server to what it needs of its machine."""

from __future__ import annotations

from scripts.lib.feasibility_memory import memory_share
from scripts.lib.feasibility_rules import integer
from scripts.lib.launch import DeviceRequest
from scripts.lib.resolve import Resolved

_TENSOR = ("tensor-parallel-size", "tp-size", "tp")
_PIPELINE = ("pipeline-parallel-size", "pp-size", "pp")
_DATA = ("data-parallel-size", "dp-size", "dp")


def device_request(resolved: Resolved) -> DeviceRequest:
    """The GPUs that the parallel sizes in the flags make, and what hardware and flags say of them."""
    hardware = resolved.hardware
    if hardware.accelerator == "cpu":
        return DeviceRequest(hardware.name)
    return DeviceRequest(
        hardware.name, _gpus(resolved), hardware.nvml_name, hardware.unified_memory, memory_share(resolved)
    )


def _gpus(resolved: Resolved) -> int:
    ranks = _size(resolved, _TENSOR) * _size(resolved, _PIPELINE)
    # With SGLang's attention by data parallelism the replicas share the tensor ranks.
    return ranks if resolved.flags.get("enable-dp-attention") else ranks * _size(resolved, _DATA)


def _size(resolved: Resolved, spellings: tuple[str, ...]) -> int:
    """The larger of 1 and the flag, whichever way it is spelled."""
    return max(1, *(integer(resolved.flags.get(name)) or 1 for name in spellings))
