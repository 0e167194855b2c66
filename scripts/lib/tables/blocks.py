"""What the printed tables share: rows that may be compared stand in one block, and every table says how often
was measured and what must not be believed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import polars as pl

from scripts.lib.cell import BASELINE
from scripts.lib.metrics import ABSENT, METRICS
from scripts.lib.record import MEASURED
from scripts.lib.statistics import UNRESOLVED
from scripts.lib.tables import markdown
from scripts.lib.tables.compare import (
    CELL_BLOCK,
    METHOD,
    SERVER_BLOCK,
    in_reading_order,
    over_repeats,
    usable,
)
from scripts.lib.validity import SEVERITIES, UNFAIR, VALID

STANDING = ("validity", "validity_reasons", "repeats_asked", "repeats_valid", "statuses")
"""Columns of a point that marks and status words are read from, beside its verdict."""

POINT_BLOCK = (*CELL_BLOCK, "synthetic")
"""Points that may stand in one table; made-up acceptance has tables of its own."""

_UNRESOLVED, _LOST, _UNFAIR, _INVALID = "?", "*", "!", "!!"
_MEANINGS = {
    _UNRESOLVED: "unresolved, the difference to the baseline may be noise",
    _LOST: "some repeats are not valid and left out",
    _UNFAIR: "UNFAIR, not measured like the baseline",
    _INVALID: "INVALID, not to be believed",
}


def blocks_of(table: pl.DataFrame, keys: Sequence[str]) -> Iterator[tuple[dict[str, object], pl.DataFrame]]:
    """Split a table in reading order into its blocks: (values of `keys`, rows)."""
    for values, rows in table.group_by(keys, maintain_order=True):
        yield dict(zip(keys, values, strict=True)), rows


def method_rows(rows: pl.DataFrame) -> Iterator[tuple[list[str], pl.DataFrame]]:
    """Split a block by method and k: (row labels, rows)."""
    for (method, k), of_method in rows.group_by(METHOD, maintain_order=True):
        yield [method, markdown.k_text(k)], of_method


def validity_mark(validity: object) -> str:
    """The mark of a validity; nothing for VALID, and for what there is not (None)."""
    return "" if validity in (VALID, None) else _UNFAIR if validity == UNFAIR else _INVALID


def figure_marks(row: Mapping[str, object]) -> str:
    """The marks behind a point's figure, or nothing."""
    if mark := validity_mark(row["validity"]):
        return mark
    marks = _UNRESOLVED if row["verdict"] == UNRESOLVED else ""
    return marks + (_LOST if row["repeats_valid"] < row["repeats_asked"] else "")


def ratio_mark(row: Mapping[str, object]) -> str:
    """The mark of the `none` beneath a point's ratio, with a space before it; nothing for a table without ratios, and where
    the point's own mark says as much."""
    below = row.get("baseline_validity")
    worse = below is not None and SEVERITIES.index(below) > SEVERITIES.index(row["validity"])
    return f" {validity_mark(below)}" if worse else ""


def status_words(row: Mapping[str, object]) -> str:
    """What stands in the place of a figure that a point does not have."""
    return "/".join(status for status in row["statuses"] if status != MEASURED) or ABSENT


def marks_note(points: pl.DataFrame) -> list[str]:
    """What the marks in a table of points mean, as lines of markdown; only those that it has."""
    shown = points.filter(pl.col("measured") > 0).to_dicts()
    of_figures = {mark for row in shown for mark in _separate(figure_marks(row))}
    of_ratios = {ratio_mark(row).strip() for row in shown} - {""}
    used = of_figures | of_ratios
    words = "; ".join(f"{mark} {meaning}" for mark, meaning in _MEANINGS.items() if mark in used)
    words += f"; in brackets that of `{BASELINE}`" if of_ratios else ""
    where = ": see validity.md" if used - {_UNRESOLVED} else ""
    return markdown.paragraph(f"Marks: {words}{where}.") if used else []


def validity_note(marks: Iterable[str]) -> list[str]:
    """What these marks of validity_mark mean, as lines of markdown."""
    words = "; ".join(f"{mark} {_MEANINGS[mark]}" for mark in sorted(set(marks) - {""}))
    return markdown.paragraph(f"Marks: {words}: see validity.md.") if words else []


def _separate(marks: str) -> tuple[str, ...]:
    return (marks,) if marks == _INVALID else tuple(marks)


def repeats_note(table: pl.DataFrame, what: str = "cell") -> str:
    """How far the figures can be trusted, by the number of repeats (boots of a server) behind them."""
    counts = table["measured"].filter(table["measured"] > 0)
    if counts.is_empty():
        return "Nothing was measured."
    fewest, most = counts.min(), counts.max()
    if most == 1:
        return f"Single run of each {what}: the spread is unknown, so small differences may be noise."
    if fewest == most:
        return f"Median of {most} repeats."
    return f"Median of {fewest} to {most} repeats; a single run has no known spread."


def server_table(cells: pl.DataFrame, metrics: Sequence[str]) -> pl.DataFrame:
    """One row per server for facts of a boot: the first value among the cells of each boot, then the median
    over boots."""
    boot = (*SERVER_BLOCK, *METHOD, "synthetic", "repeat")
    boots = (
        usable(cells)
        .group_by(boot, maintain_order=True)
        .agg(
            *(pl.col(name).drop_nulls().first() for name in metrics),
            # A boot that gave one measured cell did start, whatever became of its other cells.
            pl.col("status").sort_by(pl.col("status") != "measured", maintain_order=True).first(),
        )
    )
    known = pl.any_horizontal(pl.col(name).is_not_null() for name in metrics)
    rows = over_repeats(boots, (*SERVER_BLOCK, *METHOD, "synthetic"), metrics, known)
    return in_reading_order(rows)


def server_text(table: pl.DataFrame, metrics: Sequence[str]) -> list[str]:
    """Blocks of a server table, one pipe table each; a server without any figure shows its status in the
    first column.

    Metrics that no server has are named once instead of filling columns with ABSENT.
    """
    known = [name for name in metrics if table[name].null_count() < len(table)] or list(metrics)[:1]
    lines: list[str] = []
    headers = ["method", "k", *(METRICS[name].column for name in known)]
    for block, rows in blocks_of(table, (*SERVER_BLOCK, "synthetic")):
        body = [
            [*names, *_figures(of_method.row(0, named=True), known)] for names, of_method in method_rows(rows)
        ]
        lines += ["", markdown.heading(block), "", *markdown.table(headers, body, fixed=2)]
    unknown = ", ".join(METRICS[name].label for name in metrics if name not in known)
    if unknown and not table.is_empty():
        lines += [
            "",
            *markdown.paragraph(f"No server reported: {unknown} (why: column `absent` of cells.csv)."),
        ]
    return lines


def _figures(row: Mapping[str, object], metrics: Sequence[str]) -> list[str]:
    figures = [METRICS[name].text(row[name]) for name in metrics]
    if not row["measured"] and row["statuses"]:
        figures[0] = "/".join(row["statuses"])
    return figures
