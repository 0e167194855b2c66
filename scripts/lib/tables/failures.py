"""Every cell without a usable result, and why: one section per cause, with the line that says it and where the
log lies."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from scripts.lib.cell import AXES, Cell
from scripts.lib.record import FAILURE_FIELDS, INFEASIBLE, MEASURED, MISLABELLED
from scripts.lib.tables import markdown

_CAUSE = (
    "status",
    "failure_class",
    "failure_cause",
    "failure_root_line",
    "failure_fix",
    "failure_phase",
    "reasons",
)


def without_result(cells: pl.DataFrame) -> pl.DataFrame:
    """The rows without a usable result: failed, damaged, infeasible, mislabelled."""
    return cells.filter(pl.col("status") != MEASURED)


def failed(cells: pl.DataFrame) -> pl.DataFrame:
    """The rows that should have a result and have none: failed, damaged, mislabelled. Infeasible cells were never
    to run."""
    return without_result(cells).filter(pl.col("status") != INFEASIBLE)


def closing_words(cells: pl.DataFrame) -> str | None:
    """What ends a run in which cells failed, e.g. `2 of 20 cells failed, 1 is mislabelled`; None when none did."""
    lost = failed(cells)
    mislabelled = len(lost.filter(pl.col("status") == MISLABELLED))
    words = []
    if len(lost) > mislabelled:
        words.append(f"{len(lost) - mislabelled} of {len(cells)} cells failed")
    if mislabelled:
        subject = str(mislabelled) if words else f"{mislabelled} of {len(cells)} cells"
        words.append(f"{subject} {'is' if mislabelled == 1 else 'are'} mislabelled")
    return ", ".join(words) or None


def incomplete(cells: pl.DataFrame) -> pl.DataFrame:
    """The measured rows in which some requests failed."""
    return cells.filter(pl.col("status") == MEASURED, pl.col("completed") < pl.col("requests"))


def counts_line(cells: pl.DataFrame) -> str:
    """E.g. `4 of 20 cells have no usable result: 2 failed, 2 infeasible.`"""
    lost = without_result(cells)
    if lost.is_empty():
        return f"No failures: all {len(cells)} cells have a result." if len(cells) else "There are no cells."
    by_status = lost["status"].value_counts().sort("status").rows()
    kinds = ", ".join(f"{count} {status}" for status, count in by_status)
    verb = "has" if len(lost) == 1 else "have"
    return f"{len(lost)} of {len(cells)} {_plural(len(cells), 'cell')} {verb} no usable result: {kinds}."


def failures_table(cells: pl.DataFrame) -> pl.DataFrame:
    """One row per cell without a usable result: what failed and where the log lies."""
    return without_result(cells).select(
        *AXES, "synthetic", "status", "reasons", *FAILURE_FIELDS, "evidence", "log"
    )


def failures_text(cells: pl.DataFrame) -> list[str]:
    """All of it as lines of markdown."""
    lines = markdown.paragraph(counts_line(cells))
    for number, (_, rows) in enumerate(without_result(cells).group_by(_CAUSE, maintain_order=True), start=1):
        lines += _section(number, rows)
    return [*lines, *_incomplete(cells), *_remarks(cells)]


def _incomplete(cells: pl.DataFrame) -> list[str]:
    rows = incomplete(cells)
    if rows.is_empty():
        return []
    lines = ["", "## Measured, but not every request completed", ""]
    lines += markdown.paragraph("Their figures are of the completed requests alone.")
    lines.append("")
    for row in rows.iter_rows(named=True):
        lines += [f"- {_path(row)}", *(f"  {reason}" for reason in row["reasons"]), *_log(row)]
    return lines


def _remarks(cells: pl.DataFrame) -> list[str]:
    """What to know before believing a measured figure, each remark once."""
    noted = cells.explode("notes").drop_nulls("notes")
    if noted.is_empty():
        return []
    lines = ["", "## Remarks", ""]
    for (note,), rows in noted.group_by("notes", maintain_order=True):
        count = f"{len(rows)} {_plural(len(rows), 'cell')}, the first is {_path(rows.row(0, named=True))}"
        lines += [f"- {note}", f"  ({count})"]
    return lines


def _section(number: int, rows: pl.DataFrame) -> list[str]:
    first = rows.row(0, named=True)
    title = first["failure_class"] or first["status"]
    mislabelled = first["status"] == MISLABELLED
    words = "measured, but not what the row says" if mislabelled else first["status"]
    lines = ["", f"## {number}. {title} ({len(rows)} {_plural(len(rows), 'cell')} {words})", ""]
    phase = first["failure_phase"]
    if phase and first["failure_process"]:
        phase += f" (process {first['failure_process']})"
    facts = {"cause": first["failure_cause"], "phase": phase, "fix": first["failure_fix"]}
    if mislabelled or not first["failure_cause"]:
        # Each reason of a mislabelled cell names what was asked, what was resolved and the line.
        lines += [f"- {reason}" for reason in first["reasons"] or ()]
        facts["cause"] = None
    lines += [f"- {name}: {text}" for name, text in facts.items() if text]
    if first["failure_root_line"] and not mislabelled:
        # Verbatim and indented, so that markdown leaves it alone.
        lines += ["- the line that says it:", "", f"      {first['failure_root_line']}"]
    lines += ["", "Cells:", ""]
    for row in rows.iter_rows(named=True):
        lines += [f"- {_path(row)}", *_log(row)]
    return lines


def _path(row: Mapping[str, object]) -> str:
    return Cell.from_axes(row).path


def _log(row: Mapping[str, object]) -> list[str]:
    if row["log"]:
        return [f"  log: {row['log']}"]
    return [f"  evidence: {row['evidence']}"] if row["evidence"] else []


def _plural(count: int, noun: str) -> str:
    return noun if count == 1 else noun + "s"
