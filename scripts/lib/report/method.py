"""How the figures came about, in facts of this very run."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from scripts.lib.metrics import METRICS, Metric
from scripts.lib.plots.naming import counted, repeats_words

_EXPLAINED = ("requests", "throughput", "comparison", "latency", "acceptance", "memory", "startup")
_MOST = 6


def facts(cells: pl.DataFrame, points: pl.DataFrame) -> list[tuple[str, str]]:
    """(name, words) in reading order; what is not known is left out."""
    return [(name, words) for name, words in _facts(cells, points) if words]


def _facts(cells: pl.DataFrame, points: pl.DataFrame) -> Iterator[tuple[str, str]]:
    yield "when", _span(cells)
    yield "machines", _values(cells, "hardware")
    yield "devices", _values(cells, "device")
    yield "GPUs", _gpus(cells)
    yield "hosts", _values(cells, "host")
    yield "engines", _values(cells, "engine")
    yield "engine versions", _values(cells, "engine_version")
    yield "models", _values(cells, "model")
    yield "scenarios", _values(cells, "scenario")
    measured = cells.filter(pl.col("status") == "measured")
    boots = measured["boot"].drop_nulls().n_unique()
    yield (
        "extent",
        f"{counted(len(cells), 'cell')}, {len(measured):,} of them measured"
        + (f" on {counted(boots, 'server start')}" if boots else ""),
    )
    yield "requests of a cell", _range(measured, "requests")
    yield "tokens of an answer", _range(measured, "tokens_per_request")
    yield (
        "repeats",
        repeats_words(points) + " Every repeat is a server start of its own." if len(points) else "",
    )
    yield (
        "load",
        "As many workers as the concurrency says send streaming requests one after another, without pause; "
        "requests of a warm-up come before and count nowhere.",
    )
    yield (
        "comparison",
        "Every ratio is to none on the same hardware, engine, model, max_model_len, scenario and concurrency, "
        "repeat by repeat. Faster or slower means: the 95% interval leaves out 1, and the difference is larger than what "
        "repeats of the same thing scatter by.",
    )
    yield "workflow", _values(cells, "workflow_commit")


def explained() -> list[Metric]:
    """The metrics a reader meets in tables and plots."""
    return [metric for metric in METRICS.values() if metric.subject in _EXPLAINED]


def _gpus(cells: pl.DataFrame) -> str:
    """A warning where servers that are compared may have run on different GPUs of one kind."""
    used = cells.group_by("hardware").agg(pl.col("gpu_uuids").drop_nulls().n_unique())
    most = used["gpu_uuids"].max() or 0
    if most < 2:
        return ""
    return (
        f"Servers of one hardware ran on {most} different GPUs or sets of them (cells.csv, gpu_uuids), which may differ by some "
        "percent."
    )


def _span(cells: pl.DataFrame) -> str:
    first, last = cells["started_at"].min(), cells["finished_at"].max()
    return f"{first} to {last}" if first and last else ""


def _values(cells: pl.DataFrame, name: str) -> str:
    values = cells[name].drop_nulls().unique(maintain_order=True).to_list()
    more = f" and {len(values) - _MOST} more" if len(values) > _MOST else ""
    return ", ".join(values[:_MOST]) + more


def _range(cells: pl.DataFrame, name: str) -> str:
    low, high = cells[name].min(), cells[name].max()
    if low is None:
        return ""
    few, many = METRICS[name].text(low), METRICS[name].text(high)
    return few if few == many else f"{few} to {many}"
