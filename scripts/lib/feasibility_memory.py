"""How much of a device's memory a server takes for itself, and whether the machine can give it."""

from __future__ import annotations

from scripts.lib.feasibility_rules import Verdict
from scripts.lib.resolve import Resolved

SHARE_FLAGS = {"vllm": "gpu-memory-utilization", "sglang": "mem-fraction-static"}


def memory_share(resolved: Resolved) -> float | None:
    """The share of the device's memory that the server will take, from its flag or as this machine is known to take it
    without one; None where neither says so.
    """
    flag = SHARE_FLAGS[resolved.engine.kind]
    known = resolved.hardware.vllm_defaults if resolved.engine.kind == "vllm" else {}
    try:
        return float(resolved.flags.get(flag, known.get(flag.replace("-", "_"))))
    except (TypeError, ValueError):
        return None


def memory_utilization(resolved: Resolved) -> Verdict | None:
    hardware, asked = resolved.hardware, memory_share(resolved)
    limit, flag = hardware.max_gpu_memory_utilization, SHARE_FLAGS[resolved.engine.kind]
    if asked is None and hardware.unified_memory:
        most = "" if limit is None else f", {limit:g} at most"
        words = f"{flag} is not given, and what the server takes by itself of the memory that CPU and GPU share is not known; give it"
        return Verdict("infeasible", words + most)
    if limit is None or asked is None or asked <= limit:
        return None
    origin = "" if flag in resolved.flags else " (the engine's default, as the flag is not given)"
    words = f"{flag} {asked:g}{origin} is over {limit:g}, the most known to start on {hardware.name}"
    if not hardware.unified_memory:
        return Verdict("warning", words)
    return Verdict("infeasible", f"{words}, where CPU and GPU share the memory: more takes the host with it")
