"""How many of the drafted tokens were kept, by method, k, concurrency and position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from scripts.lib.metrics import METRICS
from scripts.lib.tables import markdown
from scripts.lib.tables.blocks import POINT_BLOCK, blocks_of, repeats_note, status_words
from scripts.lib.tables.points import POINT

_SCALARS = ("acceptance_length", "acceptance_rate", "tokens_per_step")
_SKIPPING = "tokens_per_step"
_POSITIONS = "acceptance_per_position"
_MOST_POSITIONS = 5
_CAPTION = """Over the measured window, at each concurrency c. Length: tokens per draft, 1 + accepted /
drafts. Rate: accepted / drafted tokens; it falls as k grows even where more tokens are kept, so compare
lengths. By position: share of the drafts whose token at that position was kept."""
_SKIPPING_CAPTION = """Steps without a draft (ngram, suffix) count in none of these; per step: tokens per
decoding step with those steps included."""


def acceptance_table(points: pl.DataFrame) -> pl.DataFrame:
    """One row per speculating point: medians over the repeats that count; by position, the median at each
    position."""
    return points.filter(pl.col("k") > 0).select(
        *POINT,
        *(f"{name}{part}" for name in _SCALARS for part in ("", "_low", "_high")),
        _POSITIONS,
        "acceptance_source",
        *("validity", "statuses", "repeats_asked"),
        measured=pl.col("repeats").list.len() * pl.col("acceptance_length").is_not_null(),
    )


def acceptance_text(table: pl.DataFrame) -> list[str]:
    """The table as lines of markdown."""
    if table.is_empty():
        return [*markdown.paragraph(_CAPTION), "", "No cell speculates."]
    skipping = _SKIPPING_CAPTION if table[_SKIPPING].count() else ""
    lines = markdown.paragraph(f"{_CAPTION} {skipping} {repeats_note(table)}")
    scalars = [name for name in _SCALARS if name != _SKIPPING or table[name].count()]
    headers = ["method", "k", "c", *(METRICS[name].column for name in (*scalars, _POSITIONS))]
    for block, rows in blocks_of(table, POINT_BLOCK):
        body = [_row(row, scalars) for row in rows.iter_rows(named=True)]
        lines += ["", markdown.heading(block), "", *markdown.table(headers, body, fixed=3)]
    return lines


def _row(row: Mapping[str, object], scalars: Sequence[str]) -> list[str]:
    figures = [METRICS[name].text(row[name]) for name in scalars]
    if row["acceptance_length"] is None:
        figures[0] = status_words(row)
    positions = row[_POSITIONS]
    text = METRICS[_POSITIONS].text(positions and positions[:_MOST_POSITIONS])
    if positions and len(positions) > _MOST_POSITIONS:
        text += " .."
    return [row["method"], str(row["k"]), str(row["concurrency"]), *figures, text]
