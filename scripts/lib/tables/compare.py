"""What is compared with what: the baseline of a cell, and the median over repeats."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from scripts.lib.cell import BASELINE
from scripts.lib.metrics import METRICS
from scripts.lib.record import MISLABELLED

SERVER_BLOCK = ("hardware", "engine", "model", "max_model_len")
"""Servers that may be compared with each other: everything but the method is equal."""

CELL_BLOCK = (*SERVER_BLOCK, "scenario")

CONDITIONS = (*CELL_BLOCK, "concurrency")
SAME_AS_BASELINE = (*CONDITIONS, "repeat")
METHOD = ("method", "k")

_NO_BASELINE = f"speedup: there is no `none` cell with the same {', '.join(SAME_AS_BASELINE)}"
_NO_BASELINE_VALUE = "speedup: the `none` cell has no usable throughput (status {})"
_NO_VALUE = "speedup: this cell has no usable throughput (status {})"
_NO_CONCURRENCY = "max_concurrency_change: the concurrency of this cell or of `none` with the same max_model_len is not known"
_NO_KV = "kv_cache_change: the KV cache of this cell or of `none` with the same max_model_len is not known"


def headline_tps() -> pl.Expr:
    """Throughput that answers the question: of one request at concurrency 1, of all together above
    (metrics.headline)."""
    return (
        pl.when(pl.col("concurrency") == 1).then(pl.col("per_request_tps")).otherwise(pl.col("aggregate_tps"))
    )


def usable_row() -> pl.Expr:
    """Whether a row's figures are of what the row says."""
    return pl.col("status").is_null() | (pl.col("status") != MISLABELLED)


def usable(cells: pl.DataFrame) -> pl.DataFrame:
    """The same rows, mislabelled ones without their metrics: those were measured on something else than the row
    says, so no table shows them and nothing is compared with them."""
    return cells.with_columns(pl.when(usable_row()).then(pl.col(name)).alias(name) for name in METRICS)


def with_speedup(cells: pl.DataFrame) -> pl.DataFrame:
    """Fill `speedup` against the `none` cell that shares everything but the method, and say in `absent` where
    it cannot."""
    compared = usable(cells)
    baseline = compared.filter(pl.col("method") == BASELINE, ~pl.col("synthetic")).select(
        *SAME_AS_BASELINE, _baseline_tps=headline_tps(), _baseline_status=pl.col("status")
    )
    own = compared.select(_own_tps=headline_tps())
    joined = pl.concat([cells, own], how="horizontal").join(
        baseline, on=SAME_AS_BASELINE, how="left", maintain_order="left"
    )
    value, reference = pl.col("_own_tps"), pl.col("_baseline_tps")
    speedup = pl.when(reference > 0).then(value / reference)
    reason = (
        pl.when(value.is_null())
        .then(pl.format(_NO_VALUE, pl.col("status").fill_null("?")))
        .when(pl.col("_baseline_status").is_null())
        .then(pl.lit(_NO_BASELINE))
        .otherwise(pl.format(_NO_BASELINE_VALUE, pl.col("_baseline_status").fill_null("?")))
    )
    return _filled(joined, "speedup", speedup, reason).select(cells.columns)


def _filled(frame: pl.DataFrame, name: str, value: pl.Expr, reason: pl.Expr) -> pl.DataFrame:
    """Set the column `name`; where it stays null, add the reason to `absent`."""
    absent = pl.col("absent").fill_null([])
    return frame.with_columns(
        value.alias(name), absent=pl.when(value.is_null()).then(absent.list.concat(reason)).otherwise(absent)
    )


def with_memory_changes(cells: pl.DataFrame) -> pl.DataFrame:
    """Fill `kv_cache_change` (percent) and `max_concurrency_change` (requests) against `none` of the same block; at
    another max_model_len both mean something else, so there is nothing to compare them with."""
    compared = usable(cells)
    names = ("kv_cache_tokens", "max_concurrency")
    baseline = (
        compared.filter(pl.col("method") == BASELINE, ~pl.col("synthetic"))
        .group_by(SERVER_BLOCK)
        .agg(pl.col(name).median().alias(f"_baseline_{name}") for name in names)
    )
    own = compared.select(pl.col(name).alias(f"_own_{name}") for name in names)
    joined = pl.concat([cells, own], how="horizontal").join(
        baseline, on=SERVER_BLOCK, how="left", maintain_order="left"
    )
    (kv, reference), (fits, other) = ((pl.col(f"_own_{name}"), pl.col(f"_baseline_{name}")) for name in names)
    change = pl.when(reference > 0).then(100 * (kv / reference - 1))
    joined = _filled(joined, "kv_cache_change", change, pl.lit(_NO_KV))
    joined = _filled(joined, "max_concurrency_change", fits - other, pl.lit(_NO_CONCURRENCY))
    return joined.select(cells.columns)


def over_repeats(
    cells: pl.DataFrame, keys: Sequence[str], metrics: Sequence[str], present: pl.Expr
) -> pl.DataFrame:
    """One row per combination of `keys`: the median of each metric over the rows that have it.

    `present` says which rows count as measured. Added columns: `measured` (how many), `asked` (rows),
    `statuses` (of the rows that are not measured). Rows keep the order of their first appearance."""
    return cells.group_by(keys, maintain_order=True).agg(
        pl.col(metrics).median(),
        measured=present.sum(),
        asked=pl.len(),
        statuses=pl.col("status").filter(pl.col("status") != "measured").unique(maintain_order=True),
    )


def in_reading_order(frame: pl.DataFrame) -> pl.DataFrame:
    """Blocks together, the baseline first in each, then methods by name and k, then concurrency."""
    block = [name for name in CELL_BLOCK if name in frame.columns]
    rest = [name for name in (*METHOD, "concurrency") if name in frame.columns]
    block += [name for name in ("synthetic",) if name in frame.columns]
    return frame.sort([*block, pl.col("method") != BASELINE, *rest])
