"""What is not to be believed or compared, and why: counts by check, then every cell."""

from __future__ import annotations

import polars as pl

from scripts.lib.cell import AXES, Cell
from scripts.lib.tables import markdown
from scripts.lib.validity import INVALID, UNFAIR, VALID
from scripts.lib.validity_checks import CHECKS

_MOST_GROUPS = 10
_MEANINGS = {check.name: check.meaning for check in CHECKS}


def validity_table(cells: pl.DataFrame) -> pl.DataFrame:
    """One row per cell: its validity and its reasons."""
    return cells.select(*AXES, "synthetic", "status", "validity", "validity_reasons")


def validity_line(cells: pl.DataFrame) -> str | None:
    """E.g. `3 of 20 cells are INVALID, 2 UNFAIR.`, without those that have no result at all; None when all are
    VALID."""
    measured = cells.filter(pl.col("status") == "measured")
    counts = dict(measured["validity"].value_counts().rows())
    words = [f"{counts[name]} {name}" for name in (INVALID, UNFAIR) if counts.get(name)]
    if not words:
        return None
    verb = "is" if sum(counts.get(name, 0) for name in (INVALID, UNFAIR)) == 1 else "are"
    first, *rest = words
    number, name = first.split()
    return f"{number} of {len(measured)} measured cells {verb} {', '.join([name, *rest])}."


def validity_text(table: pl.DataFrame) -> list[str]:
    """The table as lines of markdown."""
    if table.is_empty():
        return ["There are no cells."]
    doubted = table.filter(pl.col("validity") != VALID)
    if doubted.is_empty():
        return [f"Nothing speaks against any of the {len(table)} cells."]
    rows = doubted.explode("validity_reasons").with_columns(
        name=pl.col("validity_reasons").str.split(": ").list.first(),
        words=pl.col("validity_reasons").str.replace(r"^[^:]*: ", ""),
    )
    counts = (
        rows.group_by("name")
        .agg(cells=pl.struct(AXES).n_unique())
        .sort("cells", "name", descending=[True, False])
    )
    lines = markdown.paragraph(
        f"{len(doubted)} of {len(table)} cells are not VALID. Limits: config key `validity`; checks: docs/trust.md. "
        "What failed outright: failures.md."
    )
    body = [[name, f"{count:,d}"] for name, count in counts.rows()]
    lines += ["", *markdown.table(["check", "cells"], body, fixed=1)]
    for name, _ in counts.rows():
        lines += _section(name, rows.filter(pl.col("name") == name))
    return lines


def _section(name: str, rows: pl.DataFrame) -> list[str]:
    lines = ["", f"## {name}", ""]
    if name in _MEANINGS:
        lines += [*markdown.paragraph(f"A cell has this when {_MEANINGS[name]}."), ""]
    groups = rows.group_by("words", maintain_order=True)
    for number, ((words,), cells) in enumerate(groups):
        if number == _MOST_GROUPS:
            lines.append("- and more: validity.csv")
            break
        first = Cell.from_axes(cells.row(0, named=True)).path
        count = f"{len(cells)} cells, the first is {first}" if len(cells) > 1 else first
        lines += [f"- {words}", f"  ({count})"]
    return lines
