"""The metrics that say how much of the machine others used while a cell was measured, from the manifest's `host_state`
(host.py) and `device_watch` (gpu_watch.py). Pure."""

from __future__ import annotations

from collections.abc import Mapping

from scripts.lib.metrics import of_subject

_UNWATCHED = "measured by a version that did not watch the machine"
_UNSEEN = (
    "the driver does not show the server's own processes (a container), so others' cannot be told from them"
)
_UNSAID = "the driver does not tell it by process"
_MIB_PER_GIB = 1024


def host_metrics(manifest: Mapping[str, object]) -> tuple[dict[str, object], dict[str, str]]:
    """Metrics of the subject host, and for each that is None the reason."""
    state, watch = manifest.get("host_state"), manifest.get("device_watch")
    values: dict[str, object] = dict.fromkeys(of_subject("host"))
    reasons = dict.fromkeys(values, (state or {}).get("absent") or _UNWATCHED)
    if state and state.get("wall_s"):
        values["foreign_cpu_share"] = state["foreign_cpu_share"]
        values["steal_share"] = state["steal_s"] / (state["cpus"] * state["wall_s"])
        values["host_load_1m"] = state["load_1m"]["after"]
    on_gpu, why = _foreign_on_gpu(watch)
    values |= on_gpu
    reasons |= dict.fromkeys(on_gpu, why)
    return values, {name: reasons[name] for name, value in values.items() if value is None}


def _foreign_on_gpu(watch: Mapping[str, object] | None) -> tuple[dict[str, float | None], str]:
    values = dict.fromkeys(("foreign_gpu_memory_gib", "foreign_gpu_utilization"))
    if not watch:
        return values, _UNWATCHED
    if watch.get("absent"):
        return values, str(watch["absent"])
    others = watch["foreign_processes"]
    if others is None:
        return values, _UNSEEN
    for name, key, unit in (
        ("foreign_gpu_memory_gib", "memory_mib", _MIB_PER_GIB),
        ("foreign_gpu_utilization", "utilization", 1),
    ):
        known = [process[key] for process in others if process[key] is not None]
        # Nobody else there is 0; others of whom nothing is told are not.
        values[name] = sum(known) / unit if known or not others else None
    return values, _UNSAID
