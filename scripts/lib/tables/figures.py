"""Tables that show some metrics of every point side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from scripts.lib.metrics import METRICS
from scripts.lib.tables import markdown
from scripts.lib.tables.blocks import POINT_BLOCK, STANDING, blocks_of, figure_marks, status_words
from scripts.lib.tables.points import POINT


def figures_table(points: pl.DataFrame, metrics: Sequence[str]) -> pl.DataFrame:
    """One row per point: medians over the repeats that count, each with its interval.

    `measured` counts the repeats behind the figures, 0 for a point that has none of them."""
    return points.select(
        *POINT,
        *(f"{name}{part}" for name in metrics for part in ("", "_low", "_high")),
        "verdict",
        *STANDING,
        measured=pl.col("repeats").list.len() * pl.any_horizontal(pl.col(metrics).is_not_null()),
    )


def figures_text(table: pl.DataFrame, metrics: Sequence[str]) -> list[str]:
    """Lines of markdown, one pipe table per block; figures that no point has are named instead of filling columns."""
    shown = [name for name in metrics if table[name].count()] or list(metrics[:1])
    headers = ["method", "k", "c", *(METRICS[name].column for name in shown)]
    lines: list[str] = []
    for block, rows in blocks_of(table, POINT_BLOCK):
        body = [_row(row, shown) for row in rows.iter_rows(named=True)]
        lines += ["", markdown.heading(block), "", *markdown.table(headers, body, fixed=3)]
    lacking = ", ".join(METRICS[name].label for name in metrics if name not in shown)
    if lacking and not table.is_empty():
        lines += ["", *markdown.paragraph(f"No cell has: {lacking} (why: column `absent` of cells.csv).")]
    return lines


def _row(row: Mapping[str, object], shown: Sequence[str]) -> list[str]:
    figures = [METRICS[name].text(row[name]) for name in shown]
    if not row["measured"]:
        figures[0] = status_words(row)
    elif marks := figure_marks(row):
        figures[-1] += f" {marks}"
    return [row["method"], markdown.k_text(row["k"]), str(row["concurrency"]), *figures]
