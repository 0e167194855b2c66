"""Figures in words, with their interval where repeats give one."""

from __future__ import annotations

from collections.abc import Mapping

from scripts.lib.cell import BASELINE
from scripts.lib.metrics import ABSENT, METRICS
from scripts.lib.plots.naming import CLEAR, NO_VERDICT, reason_names
from scripts.lib.validity import VALID


def figure(row: Mapping[str, object], name: str) -> str:
    """`1.53x`, `24.1 tok/s`, or ABSENT; the metric's own rounding and unit."""
    metric, value = METRICS[name], row[name]
    if value is None:
        return ABSENT
    text = metric.text(value)
    return text + (metric.unit if metric.unit in ("x", "%") else f" {metric.unit}" if metric.unit else "")


def interval(row: Mapping[str, object], name: str) -> str:
    """`1.49 to 1.57`; empty where there is none."""
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    if low is None or high is None:
        return ""
    return f"{METRICS[name].text(low)} to {METRICS[name].text(high)}"


def standing(row: Mapping[str, object]) -> str:
    """What the reader must know of a figure in a word or two: its verdict, or why it is not trusted."""
    if row["validity"] != "VALID":
        names = ", ".join(reason_names(row["validity_reasons"] or ()))
        return f"{row['state']}: {names}" if names else str(row["state"])
    if row["state"] == NO_VERDICT and (below := baseline_words(row)):
        return f"{NO_VERDICT}: {below}"
    return str(row["verdict"]) if row["state"] == CLEAR else str(row["state"])


def baseline_words(row: Mapping[str, object]) -> str:
    """`none is invalid` where a ratio stands on such a baseline, else nothing."""
    validity = row.get("baseline_validity")
    return "" if validity in (VALID, None) else f"{BASELINE} is {str(validity).lower()}"


def label(row: Mapping[str, object], name: str) -> str:
    """One line about a mark, for tooltips and screen readers: `mtp k3, concurrency 4: 1.53x (1.49 to 1.57), faster`."""
    spread = interval(row, name)
    spread = f" ({spread})" if spread else ""
    return f"{row['series']}, concurrency {row['concurrency']}: {figure(row, name)}{spread}, {standing(row)}"


def curve_point(row: Mapping[str, object], name: str, x: str) -> dict[str, object]:
    """What marks.curves draws of a row: the metric `name` with its interval over the column `x`."""
    return {
        "panel": row["panel"],
        "series": row["series"],
        "state": row["state"],
        "x": row[x],
        "y": row[name],
        "low": row[f"{name}_low"],
        "high": row[f"{name}_high"],
        "label": label(row, name),
    }
