"""Why a method is as fast as it is: what each speed-up is made of, from results/tables/analysis.parquet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from scripts.lib.cell import BASELINE
from scripts.lib.metrics import ABSENT, METRICS
from scripts.lib.plots.figures import baseline_words
from scripts.lib.plots.naming import SETTING, counted, series, setting_words

COLUMNS = ("speed-up", "tokens per step", "step cost", "break-even", "of the memory's limit")


@dataclass(frozen=True)
class Causes:
    """One setting: (method and concurrency, a figure for each of COLUMNS)."""

    heading: str
    rows: tuple[tuple[str, tuple[str, ...]], ...]


def causes(analysis: pl.DataFrame) -> Iterator[Causes]:
    """The settings with a point whose speed-up can be taken apart."""
    known = analysis.filter(pl.col("method") != BASELINE, pl.col("step_cost").is_not_null())
    for _, rows in known.group_by(SETTING, maintain_order=True):
        found = list(rows.iter_rows(named=True))
        yield Causes(setting_words(found[0], SETTING), tuple((_name(row), _figures(row)) for row in found))


def above_limit(analysis: pl.DataFrame) -> list[str]:
    """One line when points are faster than the machine can be."""
    count = len(analysis.filter("above_limit"))
    if not count:
        return []
    return [
        f"{counted(count, 'point')} above what the memory's bandwidth allows: the bandwidth or the weights that hardware or model "
        "file state are wrong, or the measurement is."
    ]


def _name(row: Mapping[str, object]) -> str:
    own = "" if row["validity"] == "VALID" else str(row["validity"]).lower()
    doubts = ", ".join(filter(None, (own, baseline_words(row))))
    doubt = f" ({doubts})" if doubts else ""
    return f"{series(str(row['method']), int(str(row['k'])))}, concurrency {row['concurrency']}{doubt}"


def _figures(row: Mapping[str, object]) -> tuple[str, ...]:
    ratios = (row["tokens_per_step"], row["step_cost"], row["break_even_length"])
    share = row["limit_share"]
    return (
        ABSENT if row["speedup"] is None else f"{METRICS['speedup'].text(row['speedup'])}x",
        *(ABSENT if value is None else f"{value:.2f}" for value in ratios),
        ABSENT if share is None else f"{share:.0%}",
    )
