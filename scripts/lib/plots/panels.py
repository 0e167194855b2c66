"""What a plot's panels have in common goes into its subtitle; what differs is each panel's heading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from scripts.lib.plots.naming import setting_words

MOST_PANELS = 12
"""More panels than that are not read; the others stay in the tables, and the plot says so."""


@dataclass(frozen=True)
class Panels:
    """Rows with `panel`, a heading ('' where there is one panel only), and what all rows share, in words."""

    frame: pl.DataFrame
    shared: str
    count: int
    found: int

    @property
    def note(self) -> str:
        """Says what is left out; empty when nothing is."""
        if self.count == self.found:
            return ""
        return f"{self.count} of {self.found} panels; the others are in results/tables."


def split(frame: pl.DataFrame, axes: Sequence[str], most: int = MOST_PANELS) -> Panels:
    """Divide `frame` by `axes`, in order of appearance; panels beyond `most` are dropped, so that each value of the first
    axis that varies keeps its share."""
    varying = [axis for axis in axes if frame[axis].n_unique() > 1]
    fixed = [axis for axis in axes if axis not in varying]
    shared = setting_words(frame.row(0, named=True), fixed) if len(frame) else ""
    if not varying:
        return Panels(frame.with_columns(panel=pl.lit("")), shared, 1, 1)
    keys = frame.select(varying).unique(maintain_order=True)
    kept = _spread(keys, most)
    labels = [setting_words(row, varying) for row in kept.iter_rows(named=True)]
    joined = frame.join(
        kept.with_columns(pl.Series("panel", labels)), on=varying, how="inner", maintain_order="left"
    )
    return Panels(joined, shared, len(kept), len(keys))


def _spread(keys: pl.DataFrame, most: int) -> pl.DataFrame:
    turn = pl.int_range(pl.len()).over(keys.columns[0])
    kept = keys.with_row_index("_place").with_columns(_turn=turn).sort("_turn", "_place").head(most)
    return kept.sort("_place").select(keys.columns)
