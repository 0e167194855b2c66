"""Which k is best for each method: ranked by measured throughput at each concurrency, never by acceptance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from scripts.lib.cell import BASELINE
from scripts.lib.metrics import ABSENT, METRICS
from scripts.lib.statistics import NO_VERDICT, SINGLE_RUN, SLOWER
from scripts.lib.tables import markdown
from scripts.lib.tables.blocks import (
    POINT_BLOCK,
    STANDING,
    blocks_of,
    figure_marks,
    marks_note,
    ratio_mark,
    repeats_note,
    status_words,
)
from scripts.lib.tables.compare import headline_tps
from scripts.lib.tables.points import POINT, compare_points
from scripts.lib.tables.throughput import ratio_text
from scripts.lib.validity import VALID

_CAPTION = f"""Ratio to `{BASELINE}` by k at each concurrency c. Best: the k with the highest measured throughput, and every
other k that repeats do not tell from it; of those the smallest is the one to take. A high acceptance rate does not
make a k good."""
_SINGLE = "With single runs nothing is known of the noise, so best is only the highest figure seen."
_ADDED = {
    "best": pl.Boolean(),
    "ratio_to_best": pl.Float64(),
    "verdict_to_best": pl.String(),
}


def k_sweep_table(points: pl.DataFrame) -> pl.DataFrame:
    """One row per speculating point: its speedup, and how it compares with the best k of its method under the same
    conditions. `best` is null where no k of the method is VALID."""
    rows = points.filter(pl.col("k") > 0)
    kept = rows.select(
        *POINT,
        *("headline", "speedup", "speedup_low", "speedup_high", "baseline_validity"),
        *("verdict", "acceptance_length", "acceptance_rate", *STANDING),
        measured=pl.col("repeats").list.len(),
        value=headline_tps(),
    )
    names = (*POINT, "validity", "validity_reasons", "repeats", "headline_tps")
    dicts = rows.select(names).to_dicts()
    for row, value in zip(dicts, kept["value"], strict=True):
        row["value"] = value
    best = _best(dicts)
    added = [_against(row, best.get(_series(row))) for row in dicts]
    return pl.concat([kept, pl.DataFrame(added, schema=_ADDED, orient="row")], how="horizontal")


def _series(row: Mapping[str, object]) -> tuple:
    return tuple(row[name] for name in POINT if name != "k")


def _best(rows: Sequence[Mapping]) -> dict[tuple, Mapping]:
    found: dict[tuple, Mapping] = {}
    for row in rows:
        if row["validity"] == VALID and row["value"] is not None:
            held = found.get(_series(row))
            if held is None or row["value"] > held["value"]:
                found[_series(row)] = row
    return found


def _against(row: Mapping[str, object], best: Mapping[str, object] | None) -> tuple:
    if best is None:
        return None, None, NO_VERDICT
    if row is best:
        return True, 1.0, "best"
    found = compare_points(row, best)
    return False, found.ratio, found.verdict


def k_sweep_text(table: pl.DataFrame) -> list[str]:
    """The table as lines of markdown: a row per method and concurrency, a column per k."""
    if table.is_empty():
        return [*markdown.paragraph(_CAPTION), "", "No cell speculates."]
    lines = markdown.paragraph(f"{_CAPTION} {repeats_note(table)}")
    if (table["verdict_to_best"] == SINGLE_RUN).any():
        lines += markdown.paragraph(_SINGLE)
    lines += marks_note(table)
    for block, rows in blocks_of(table, POINT_BLOCK):
        ks = sorted(rows["k"].unique())
        headers = ["method", "c", *(f"k{k} ({METRICS['speedup'].unit})" for k in ks), "best k"]
        body = []
        for (method, concurrency), of in rows.group_by(["method", "concurrency"], maintain_order=True):
            by_k = {row["k"]: row for row in of.iter_rows(named=True)}
            figures = [_figure(by_k.get(k)) for k in ks]
            body.append([method, str(concurrency), *figures, best_words(list(by_k.values()))])
        lines += ["", markdown.heading(block), "", *markdown.table(headers, body, fixed=2)]
    return lines


def _figure(row: Mapping[str, object] | None) -> str:
    if row is None:
        return ""
    if not row["measured"]:
        return status_words(row)
    below = f" ({BASELINE}{mark})" if (mark := ratio_mark(row)) else ""
    return f"{ratio_text(row)}{below} {figure_marks(row)}".strip()


def best_words(rows: Sequence[Mapping[str, object]]) -> str:
    """`3`, `1 or 3` where repeats do not tell them apart, or nothing known."""
    if not any(row["best"] for row in rows):
        return ABSENT
    apart = (SLOWER, NO_VERDICT, SINGLE_RUN)
    tied = [row["k"] for row in rows if row["best"] or row["verdict_to_best"] not in apart]
    return " or ".join(map(str, sorted(tied)))
