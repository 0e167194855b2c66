"""Facts of a server's start, one row for each server instead of one for each point."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from scripts.lib.cell import BASELINE, Server
from scripts.lib.plots.naming import named
from scripts.lib.tables.compare import SERVER_BLOCK

SERVER = (*SERVER_BLOCK, "method", "k", "synthetic")


def with_devices(points: pl.DataFrame, devices_of: Callable[[Server], int]) -> pl.DataFrame:
    """The points with `devices`, how many their server occupies."""
    counts = [
        devices_of(Server.from_axes(row)) for row in points.select(*SERVER_BLOCK, "method", "k").to_dicts()
    ]
    return points.with_columns(pl.Series("devices", counts, dtype=pl.Int64))


def servers(points: pl.DataFrame, metrics: Sequence[str]) -> pl.DataFrame:
    """Per server `series` and the median of each metric over its points; servers without any of them are left out."""
    return (
        named(points)
        .group_by(*SERVER, "series", maintain_order=True)
        .agg(pl.col(metrics).drop_nulls().median(), pl.col("repeats_valid").max())
        .filter(pl.any_horizontal(pl.col(metrics).is_not_null()))
        .sort(*SERVER_BLOCK, pl.col("method") != BASELINE, "method", "synthetic", "k")
    )
