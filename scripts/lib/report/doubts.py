"""What is not trusted and why: every check that found something, with the points it concerns, and every failure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from scripts.lib import statistics
from scripts.lib.cell import AXES
from scripts.lib.plots.naming import counted, named, series, value_words
from scripts.lib.tables.failures import without_result

MOST_PLACES = 12


@dataclass(frozen=True)
class Doubt:
    """One reason, in words of the first case; `places` are at most MOST_PLACES of `count` cells."""

    title: str
    words: str
    count: int
    places: tuple[str, ...]
    fix: str = ""
    line: str = ""
    log: str = ""

    @property
    def more(self) -> int:
        return self.count - len(self.places)


def failures(cells: pl.DataFrame) -> list[Doubt]:
    """Cells without a usable result, one entry for each cause, the commonest first."""
    lost, axes = without_result(cells), _axes(cells)
    cause = ("status", "failure_class", "failure_cause", "failure_fix", "failure_root_line")
    found = []
    for _, rows in lost.group_by(cause, maintain_order=True):
        first = rows.row(0, named=True)
        found.append(
            Doubt(
                title=_title(first["status"], first["failure_class"]),
                words=first["failure_cause"] or "; ".join(first["reasons"] or ()) or "no reason is known",
                count=len(rows),
                places=_places(rows.iter_rows(named=True), axes),
                fix=first["failure_fix"] or "",
                line=first["failure_root_line"] or "",
                log=first["log"] or "",
            )
        )
    return sorted(found, key=lambda doubt: -doubt.count)


def _title(status: str, failure_class: str | None) -> str:
    return status if failure_class in (None, status) else f"{status} ({failure_class})"


def checks(cells: pl.DataFrame) -> list[Doubt]:
    """What the validity checks found in cells that do have a result, one entry for each check and validity."""
    doubtful = cells.filter(pl.col("validity") != "VALID", pl.col("status") == "measured")
    axes = _axes(cells)
    by_check: dict[tuple[str, str], list[tuple[Mapping[str, object], str]]] = {}
    for row in doubtful.iter_rows(named=True):
        for reason in row["validity_reasons"] or ():
            name, _, words = reason.partition(":")
            by_check.setdefault((row["validity"], name), []).append((row, words.strip() or name))
    found = [
        Doubt(
            title=f"{validity} ({name})",
            words=places[0][1] + (" (the first of them)" if len(places) > 1 else ""),
            count=len(places),
            places=_places((row for row, _ in places), axes),
        )
        for (validity, name), places in by_check.items()
    ]
    return sorted(found, key=lambda doubt: -doubt.count)


def unresolved(points: pl.DataFrame) -> list[str]:
    """Valid points without a verdict, in one line each kind."""
    valid = named(points).filter(pl.col("validity") == "VALID")
    lines = []
    for verdict, words in (
        (statistics.UNRESOLVED, "too close to the baseline to be told from it by these repeats"),
        (statistics.SINGLE_RUN, "measured once, so that nothing is known about noise"),
    ):
        rows = valid.filter(pl.col("verdict") == verdict)
        if len(rows):
            lines.append(f"{verdict.capitalize()}: {counted(len(rows), 'point')}, {words}.")
    silent = valid.filter(pl.col("verdict") == statistics.NO_VERDICT)
    for (reason,), rows in silent.group_by(["verdict_reason"], maintain_order=True):
        lines.append(f"No verdict: {counted(len(rows), 'point')}, {str(reason).replace('`', '')}.")
    made_up = int(points["synthetic"].sum())
    if made_up:
        lines.append(
            f"Synthetic: {counted(made_up, 'point')} whose acceptance the engine makes up; never ranked."
        )
    return lines


def _axes(cells: pl.DataFrame) -> list[str]:
    """The axes that tell cells apart beside method and k; what all cells share is not repeated for each."""
    others = [axis for axis in AXES if axis not in ("method", "k")]
    return [axis for axis in others if axis == "concurrency" or cells[axis].n_unique() > 1]


def _places(rows: Iterable[Mapping[str, object]], axes: Sequence[str]) -> tuple[str, ...]:
    return tuple(_place(row, axes) for row, _ in zip(rows, range(MOST_PLACES), strict=False))


def _place(row: Mapping[str, object], axes: Sequence[str]) -> str:
    name = series(str(row["method"]), int(str(row["k"])), bool(row["synthetic"]))
    return " · ".join([name, *(value_words(axis, row[axis]) for axis in axes)])
