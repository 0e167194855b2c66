"""Which series a plot shows where all of them would be too many to tell apart."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from scripts.lib.cell import BASELINE
from scripts.lib.plots.naming import SETTING

MOST_SERIES = 9


@dataclass(frozen=True)
class Choice:
    """The rows that are shown, and what was left out in words (empty: nothing)."""

    frame: pl.DataFrame
    note: str


RANKED = pl.when(pl.col("validity") == "VALID", ~pl.col("synthetic")).then(pl.col("speedup"))
"""Speed-up of the rows that may be ranked, null for the others."""


def fewer_series(frame: pl.DataFrame, most: int = MOST_SERIES) -> Choice:
    """All series where a setting has at most `most` of them; else each method with its best k there.

    The best k is the one with the highest median speed-up over the concurrencies of valid points, at a tie the
    smaller one."""
    counts = frame.group_by(SETTING).agg(pl.col("series").n_unique().alias("_count"))
    crowded = frame.join(counts.filter(pl.col("_count") > most), on=SETTING, how="semi")
    if crowded.is_empty():
        return Choice(frame, "")
    ranked = (
        crowded.with_columns(_rank=RANKED)
        .group_by(*SETTING, "method", "synthetic", "k", maintain_order=True)
        .agg(pl.col("_rank").median())
        .sort("_rank", "k", descending=[True, False], nulls_last=True, maintain_order=True)
        .group_by(*SETTING, "method", "synthetic", maintain_order=True)
        .first()
    )
    spare = frame.join(counts.filter(pl.col("_count") <= most), on=SETTING, how="semi")
    best = crowded.join(ranked, on=[*SETTING, "method", "synthetic", "k"], how="semi")
    kept = pl.concat([spare, best]).sort(
        *SETTING, pl.col("method") != BASELINE, "method", "synthetic", "k", "concurrency"
    )
    return Choice(
        kept, "Where there are many, each method is shown with its best k (highest median speed-up)."
    )
