"""One measurement of another tool in the terms of metrics.py, before it has a cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scripts.lib import formulas
from scripts.lib.request_metrics import PERCENTILES


class UnreadableResult(ValueError):
    """A file that holds no result; the message says what is wrong with it, without its name."""


@dataclass(frozen=True)
class Result:
    """`method` and `k` are None where the file does not say what the server ran. `values` are metrics by name,
    `reasons` say why one is absent."""

    concurrency: int
    values: Mapping[str, object]
    reasons: Mapping[str, str]
    method: str | None = None
    k: int | None = None
    notes: tuple[str, ...] = field(default=())
    repeat: int = 1
    started_at: str | None = None


def number(source: Mapping[str, object], name: str) -> float | None:
    """A figure of a file; None where it is absent, null or no finite number."""
    value = source.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if value == value and abs(value) != float("inf") else None


def count(source: Mapping[str, object], name: str) -> int | None:
    value = number(source, name)
    return None if value is None else round(value)


def seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def spread(
    stem: str, figures_s: Mapping[str, float | None], samples: int, values: dict, reasons: dict[str, str]
) -> None:
    """Take over a latency's mean, median, p90 and p99, but no percentile of too few samples: tools print their largest sample
    under that name."""
    values |= {f"{stem}_{way}_s": figures_s.get(way) for way in ("mean", "median", *PERCENTILES)}
    for way, share in PERCENTILES.items():
        needed = formulas.samples_needed(share)
        if samples < needed:
            values[f"{stem}_{way}_s"] = None
            reasons[f"{stem}_{way}_s"] = f"{samples} samples, {needed} needed"
