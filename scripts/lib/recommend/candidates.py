"""The configurations that compete at an operating point, read from the points table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from scripts.lib.cell import Server, method_name
from scripts.lib.metrics import METRICS, headline
from scripts.lib.tables.points import values_by_repeat
from scripts.lib.validity import VALID

POINT_AXES = ("hardware", "engine", "model", "max_model_len", "scenario", "concurrency")
"""What an operating point holds fixed; method and k compete on it."""


@dataclass(frozen=True)
class Candidate:
    """One method and k at one operating point. `samples`: the headline metric by repeat, of those that count.
    `figures`: medians of all metrics over repeats, and speedup_low, speedup_high; no speedup against a `none` that is not
    VALID. `objection`: why it is not ranked."""

    server: Server
    scenario: str
    concurrency: int
    samples: Mapping[int, float]
    figures: Mapping[str, object]
    objection: str | None = None

    @property
    def value(self) -> float | None:
        """The throughput that is compared here (metrics.headline)."""
        return self.figures[headline(self.concurrency)]

    @property
    def label(self) -> str:
        return label(self.server)


def label(server: Server) -> str:
    """`none` or `mtp k3`."""
    return method_name(server.method, server.k)


@dataclass(frozen=True)
class OperatingPoint:
    """Conditions under which methods compete, and all that do, ranked or not. `axes` are those of POINT_AXES."""

    axes: Mapping[str, str | int]
    candidates: tuple[Candidate, ...]


def operating_points(points: pl.DataFrame) -> list[OperatingPoint]:
    """One entry per operating point of the points table, in its order.

    Synthetic points are left out altogether: nothing about them is a measurement of a drafter.
    """
    real = points.filter(~pl.col("synthetic"))
    return [
        OperatingPoint(dict(zip(POINT_AXES, key, strict=True)), tuple(_candidates(rows)))
        for key, rows in real.group_by(POINT_AXES, maintain_order=True)
    ]


def _candidates(rows: pl.DataFrame) -> Iterator[Candidate]:
    ratios = ("speedup", "speedup_low", "speedup_high")
    for row in rows.iter_rows(named=True):
        yield Candidate(
            Server.from_axes(row),
            row["scenario"],
            row["concurrency"],
            values_by_repeat(row),
            {name: row.get(name) for name in (*METRICS, *ratios)}
            | ({} if row["baseline_validity"] in (VALID, None) else dict.fromkeys(ratios)),
            objection(row),
        )


def _why(reasons: Sequence[str]) -> str:
    """The first reason of a single check; of several their names, since every repeat has figures of its own
    (validity.md tells them)."""
    names = dict.fromkeys(reason.split(":", 1)[0] for reason in reasons)
    return (reasons[0] if len(names) == 1 else ", ".join(names)) or "no reason is given"


def objection(row: Mapping[str, object]) -> str | None:
    """Why a row of the points table is not ranked, None when it is."""
    if row["validity"] != VALID:
        return f"{row['validity']}: {_why(row['validity_reasons'] or ())}"
    return f"{row['headline']} is not known" if row[row["headline"]] is None else None
