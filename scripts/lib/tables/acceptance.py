"""How many of the drafted tokens were kept, by method, k, concurrency and position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from scripts.lib.cell import BASELINE
from scripts.lib.metrics import ABSENT, METRICS
from scripts.lib.tables import markdown
from scripts.lib.tables.blocks import blocks_of, repeats_note
from scripts.lib.tables.compare import CELL_BLOCK, METHOD, in_reading_order, over_repeats, usable

_KEYS = (*CELL_BLOCK, *METHOD, "concurrency")
_SCALARS = ("acceptance_length", "acceptance_rate", "tokens_per_step")
_SKIPPING = "tokens_per_step"
_POSITIONS = "acceptance_per_position"
_MOST_POSITIONS = 5
_CAPTION = """Over the measured window, at each concurrency c. Length: tokens per draft, 1 + accepted /
drafts. Rate: accepted / drafted tokens; it falls as k grows even where more tokens are kept, so compare
lengths. By position: share of the drafts whose token at that position was kept."""
_SKIPPING_CAPTION = """Steps without a draft (ngram, suffix) count in none of these; per step: tokens per
decoding step with those steps included."""


def acceptance_table(cells: pl.DataFrame) -> pl.DataFrame:
    """One row per speculating method, k and concurrency: medians over repeats; by position, the median at
    each position."""
    speculating = usable(cells).filter(pl.col("method") != BASELINE)
    rows = over_repeats(speculating, _KEYS, _SCALARS, pl.col("acceptance_length").is_not_null())
    sources = (
        speculating.filter(pl.col("acceptance_length").is_not_null())
        .group_by(_KEYS)
        .agg(pl.col("acceptance_source").drop_nulls().unique().sort().str.join(", ").replace("", None))
    )
    return in_reading_order(
        rows.join(_by_position(speculating), on=_KEYS, how="left").join(sources, on=_KEYS, how="left")
    ).select(*_KEYS, *_SCALARS, _POSITIONS, "acceptance_source", "measured", "asked", "statuses")


def _by_position(cells: pl.DataFrame) -> pl.DataFrame:
    return (
        cells.filter(pl.col(_POSITIONS).list.len() > 0)
        .select(*_KEYS, _POSITIONS, position=pl.int_ranges(0, pl.col(_POSITIONS).list.len()))
        .explode(_POSITIONS, "position")
        .group_by(*_KEYS, "position")
        .agg(pl.col(_POSITIONS).median())
        .sort("position")
        .group_by(_KEYS)
        .agg(_POSITIONS)
    )


def acceptance_text(table: pl.DataFrame) -> list[str]:
    """The table as lines of markdown."""
    skipping = _SKIPPING_CAPTION if table[_SKIPPING].count() else ""
    lines = markdown.paragraph(f"{_CAPTION} {skipping} {repeats_note(table)}")
    if table.is_empty():
        return [*lines, "", "No cell speculates."]
    scalars = [name for name in _SCALARS if name != _SKIPPING or table[name].count()]
    headers = ["method", "k", "c", *(METRICS[name].column for name in (*scalars, _POSITIONS))]
    for block, rows in blocks_of(table, CELL_BLOCK):
        body = [_row(row, scalars) for row in rows.iter_rows(named=True)]
        lines += ["", markdown.heading(block), "", *markdown.table(headers, body, fixed=3)]
    return lines


def _row(row: Mapping[str, object], scalars: Sequence[str]) -> list[str]:
    figures = [METRICS[name].text(row[name]) for name in scalars]
    if not row["measured"]:
        figures[0] = "/".join(row["statuses"]) or ABSENT
    positions = row[_POSITIONS]
    text = METRICS[_POSITIONS].text(positions and positions[:_MOST_POSITIONS])
    if positions and len(positions) > _MOST_POSITIONS:
        text += " .."
    return [row["method"], str(row["k"]), str(row["concurrency"]), *figures, text]
