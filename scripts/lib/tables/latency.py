"""How long a user waits: time to the first token, and per token after it."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from scripts.lib.cell import BASELINE
from scripts.lib.metrics import ABSENT, METRICS, of_subject
from scripts.lib.tables import markdown
from scripts.lib.tables.blocks import (
    POINT_BLOCK,
    blocks_of,
    figure_marks,
    marks_note,
    repeats_note,
    status_words,
)
from scripts.lib.tables.points import POINT

_METRICS = tuple(of_subject("latency"))
_SHOWN = tuple(name for name in _METRICS if not name.endswith("_mean_s"))
_CAPTION = """Seconds at each concurrency c. ttft: from sending a request to its first token. tpot: per output token
after the first. The gap between two chunks of a stream is no such figure: under speculation a chunk
carries several tokens. A percentile stands here only where a cell has enough requests for it."""


def latency_table(points: pl.DataFrame) -> pl.DataFrame:
    """One row per point: medians over the repeats that count, each with its interval."""
    return points.select(
        *POINT,
        *(f"{name}{part}" for name in _METRICS for part in ("", "_low", "_high")),
        *("verdict", "validity", "validity_reasons", "repeats_asked", "repeats_valid", "statuses"),
        measured=pl.col("repeats").list.len() * pl.any_horizontal(pl.col(_METRICS).is_not_null()),
    )


def latency_text(table: pl.DataFrame) -> list[str]:
    """The table as lines of markdown. Figures that no point has are named instead of filling columns."""
    lines = markdown.paragraph(f"{_CAPTION} {repeats_note(table)}") + marks_note(table)
    shown = [name for name in _SHOWN if table[name].count()] or list(_SHOWN[:1])
    headers = ["method", "k", "c", *(METRICS[name].column for name in shown)]
    for block, rows in blocks_of(table, POINT_BLOCK):
        body = [_row(row, shown) for row in rows.iter_rows(named=True)]
        lines += ["", markdown.heading(block), "", *markdown.table(headers, body, fixed=3)]
    lacking = ", ".join(METRICS[name].label for name in _SHOWN if name not in shown)
    if lacking and not table.is_empty():
        lines += ["", *markdown.paragraph(f"No cell has: {lacking} (why: column `absent` of cells.csv).")]
    return lines


def _row(row: Mapping[str, object], shown: list[str]) -> list[str]:
    figures = [METRICS[name].text(row[name]) for name in shown]
    if not row["measured"]:
        figures[0] = status_words(row)
    elif marks := figure_marks(row):
        figures[-1] += f" {marks}"
    k = ABSENT if row["method"] == BASELINE else str(row["k"])
    return [row["method"], k, str(row["concurrency"]), *figures]
