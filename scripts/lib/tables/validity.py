"""What is not to be believed or compared, and why: counts by check, then every cell."""

from __future__ import annotations

import polars as pl

from scripts.lib.cell import AXES, Cell
from scripts.lib.tables import markdown
from scripts.lib.validity import INVALID, UNFAIR, VALID
from scripts.lib.validity_checks import CHECKS

_MOST_GROUPS = 10
_MOST_NAMES = 3
_NAME = pl.col("validity_reasons").str.split(": ").list.first().alias("name")
_MEANINGS = {check.name: check.meaning for check in CHECKS}


def validity_table(cells: pl.DataFrame) -> pl.DataFrame:
    """One row per cell: its validity and its reasons."""
    return cells.select(*AXES, "synthetic", "status", "validity", "validity_reasons")


def validity_line(cells: pl.DataFrame) -> str | None:
    """E.g. `3 of 20 measured cells are INVALID (preemptions, short_window), 2 UNFAIR (unfair_settings).`, without the
    cells that have no result at all; None when all are VALID."""
    measured = cells.filter(pl.col("status") == "measured")
    words = []
    for verdict in (INVALID, UNFAIR):
        rows = measured.filter(pl.col("validity") == verdict)
        if not rows.is_empty():
            why = f"{verdict} ({_commonest(rows)})"
            verb = "is" if len(rows) == 1 else "are"
            words.append(
                f"{len(rows)} {why}"
                if words
                else f"{len(rows)} of {len(measured)} measured cells {verb} {why}"
            )
    return f"{', '.join(words)}." if words else None


def _commonest(rows: pl.DataFrame) -> str:
    names = rows.explode("validity_reasons").select(_NAME).to_series().value_counts(name="cells")
    found = names.sort("cells", "name", descending=[True, False])["name"].to_list()
    return ", ".join([*found[:_MOST_NAMES], *([".."] if len(found) > _MOST_NAMES else [])])


def validity_text(table: pl.DataFrame) -> list[str]:
    """The table as lines of markdown."""
    if table.is_empty():
        return ["There are no cells."]
    doubted = table.filter(pl.col("validity") != VALID)
    if doubted.is_empty():
        return [f"Nothing speaks against any of the {len(table)} cells."]
    rows = doubted.explode("validity_reasons").with_columns(
        _NAME,
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
