"""The main table of the page: one block for each setting, methods down, concurrency across."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from scripts.lib.cell import BASELINE
from scripts.lib.metrics import METRICS, headline
from scripts.lib.plots.figures import figure, interval, standing
from scripts.lib.plots.naming import SETTING, named, setting_words


@dataclass(frozen=True)
class Figure:
    """One field: throughput, ratio with interval, and what may be made of it. `kind` is the class for the style."""

    value: str
    ratio: str
    interval: str
    words: str
    kind: str


@dataclass(frozen=True)
class Block:
    """One setting. `columns` are headers, `rows` (name, fields); a field is None where nothing was asked for."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Figure | None, ...]], ...]


def blocks(points: pl.DataFrame) -> Iterator[Block]:
    """In reading order; the headings name every axis of the setting."""
    for _, rows in named(points).group_by(SETTING, maintain_order=True):
        first = rows.row(0, named=True)
        concurrencies = sorted(rows["concurrency"].unique())
        by_series: dict[str, dict[int, Figure]] = {}
        for row in rows.iter_rows(named=True):
            by_series.setdefault(row["series"], {})[row["concurrency"]] = _figure(row)
        yield Block(
            heading=setting_words(first, SETTING),
            columns=tuple(f"c{c}, {METRICS[headline(c)].column}" for c in concurrencies),
            rows=tuple(
                (name, tuple(fields.get(c) for c in concurrencies)) for name, fields in by_series.items()
            ),
        )


def _figure(row: Mapping[str, object]) -> Figure:
    name = str(row["headline"])
    value = METRICS[name].text(row[name])
    if row[name] is None:
        value = "/".join(row["statuses"]) or value
    baseline = row["method"] == BASELINE
    ratio = "" if baseline or row["speedup"] is None else figure(row, "speedup")
    # A status already says why there is no figure.
    words = "" if row[name] is None else standing(row)
    return Figure(
        value=value,
        ratio=ratio,
        interval=interval(row, "speedup") if ratio else "",
        words="" if baseline and words == "baseline" else words,
        kind=_kind(row),
    )


def _kind(row: Mapping[str, object]) -> str:
    if row["validity"] != "VALID":
        return "doubtful"
    verdict = str(row["verdict"])
    return verdict if verdict in ("faster", "slower", "baseline") else "open"
