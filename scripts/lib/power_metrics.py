"""The metrics of the server's GPUs over a cell's window, from the samples of gpu_watch.py. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from scripts.lib import formulas
from scripts.lib.metrics import of_subject

Series = list[float | None]

POWER_CAP = 0x04
"""Bit of NVML's clock event reasons: the power limit holds the clocks back, as it is meant to."""

SLOWDOWNS = {
    0x08: "hardware slowdown",
    0x20: "heat (software thermal slowdown)",
    0x40: "heat (hardware thermal slowdown)",
    0x80: "power brake of the board",
}
"""Bits that say that something is wrong with cooling or power supply."""

_UNWATCHED = "measured by a version that did not watch the GPUs"
_UNIFIED = "NVML reports no memory for this device: it shares the host's (unified memory, as on GB10)"
_UNSAID = "the device does not tell it through NVML"
_UNCOVERED = "the samples do not span the window"
_MIB_PER_GIB = 1024


def power_metrics(
    watch: Mapping[str, object] | None,
    samples: Sequence[Mapping[str, object]],
    window: Mapping[str, float | None],
    completion_tokens: int | None,
) -> tuple[dict[str, object], dict[str, str]]:
    """Metrics of the subject power, and for each that is None the reason.

    `watch` is the manifest's device_watch, `window` its window (seconds since the epoch). Sums are over the server's GPUs.
    """
    values: dict[str, object] = dict.fromkeys(of_subject("power"))
    start_s, end_s = window["start_s"], window["end_s"]
    why = _nothing(watch, samples, start_s, end_s)
    if why is not None:
        return values, dict.fromkeys(values, why)
    inside = [sample for sample in samples if start_s <= sample["at_s"] <= end_s] or list(samples)
    energy_j = _total([energy(samples, gpu, start_s, end_s) for gpu in range(len(watch["gpus"]))])
    values["gpu_energy_j"] = energy_j
    if energy_j is not None:
        values["gpu_power_mean_w"] = energy_j / (end_s - start_s)
        values["joules_per_token"] = energy_j / completion_tokens if completion_tokens else None
    values["gpu_power_max_w"] = _largest([_total(sample["power_w"]) for sample in inside])
    memory_mib = _largest([_total(sample["memory_mib"]) for sample in inside])
    values["gpu_memory_peak_gib"] = None if memory_mib is None else memory_mib / _MIB_PER_GIB
    values["gpu_clock_mean_mhz"] = formulas.mean(_known(inside, "sm_mhz"))
    values["gpu_utilization"] = formulas.mean(_known(inside, "utilization"))
    values["gpu_temperature_max_c"] = _largest(_known(inside, "temperature_c"))
    values["power_capped_share"] = _share_with(inside, POWER_CAP)
    values["slowdown_share"] = _share_with(inside, sum(SLOWDOWNS))
    reasons = {name: watch.get("broken") or _UNSAID for name, value in values.items() if value is None}
    if energy_j is None and values["gpu_power_max_w"] is not None:
        reasons |= dict.fromkeys(
            ("gpu_energy_j", "gpu_power_mean_w", "joules_per_token"), watch.get("broken") or _UNCOVERED
        )
    if memory_mib is None:
        reasons["gpu_memory_peak_gib"] = _UNIFIED
    if energy_j is not None and not completion_tokens:
        reasons |= {"joules_per_token": "no tokens were counted"}
    return values, reasons


def power_notes(samples: Sequence[Mapping[str, object]], window: Mapping[str, float | None]) -> list[str]:
    """A remark when heat or the power supply held the clocks back in the window."""
    start_s, end_s = window["start_s"], window["end_s"]
    if start_s is None or end_s is None:
        return []
    seen = 0
    for sample in samples:
        if start_s <= sample["at_s"] <= end_s:
            for reasons in sample["reasons"]:
                seen |= reasons or 0
    names = [name for bit, name in SLOWDOWNS.items() if seen & bit]
    return [f"the GPU was throttled inside the window: {', '.join(names)}"] if names else []


def energy(samples: Sequence[Mapping[str, object]], gpu: int, start_s: float, end_s: float) -> float | None:
    """Joules of one GPU between two moments: by its energy counter where it has one, else its power integrated (trapezoids);
    linear between samples. None without either, or when the samples do not span the time.
    """
    for name, of_time in (("energy_j", _difference), ("power_w", _integral)):
        points = [(sample["at_s"], sample[name][gpu]) for sample in samples if sample[name][gpu] is not None]
        if len(points) > 1 and points[0][0] <= start_s and points[-1][0] >= end_s:
            return of_time(points, start_s, end_s)
    return None


def _difference(points: Sequence[tuple[float, float]], start_s: float, end_s: float) -> float:
    return _at(points, end_s) - _at(points, start_s)


def _integral(points: Sequence[tuple[float, float]], start_s: float, end_s: float) -> float:
    inner = [point for point in points if start_s < point[0] < end_s]
    line = [(start_s, _at(points, start_s)), *inner, (end_s, _at(points, end_s))]
    return sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(line))


def _at(points: Sequence[tuple[float, float]], at_s: float) -> float:
    after = next(index for index, point in enumerate(points) if point[0] >= at_s)
    (t1, v1), (t0, v0) = points[after], points[max(0, after - 1)]
    return v1 if t1 == t0 else v0 + (v1 - v0) * (at_s - t0) / (t1 - t0)


def _nothing(
    watch: Mapping[str, object] | None, samples: Sequence[object], start_s: float | None, end_s: float | None
) -> str | None:
    """Why there is no figure at all; None when there may be some."""
    if not watch:
        return _UNWATCHED
    if watch.get("absent"):
        return str(watch["absent"])
    if not samples and watch.get("broken"):
        return str(watch["broken"])
    if not samples or start_s is None or end_s is None or end_s <= start_s:
        return _UNCOVERED
    return None


def _total(values: Series) -> float | None:
    return None if None in values else sum(values)


def _largest(values: Series) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _known(samples: Sequence[Mapping[str, object]], name: str) -> list[float]:
    return [value for sample in samples for value in sample[name] if value is not None]


def _share_with(samples: Sequence[Mapping[str, object]], bits: int) -> float | None:
    """Share of the samples in which one GPU at least shows one of the bits."""
    told = [sample["reasons"] for sample in samples if None not in sample["reasons"]]
    return sum(any(reasons & bits for reasons in row) for row in told) / len(told) if told else None
