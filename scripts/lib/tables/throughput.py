"""The main table (study A's): one row per method and k, one column per concurrency, each figure as a ratio to
`none`."""

from __future__ import annotations

import math
from collections.abc import Mapping

import polars as pl

from scripts.lib.cell import BASELINE
from scripts.lib.metrics import ABSENT, METRICS, headline
from scripts.lib.tables import markdown
from scripts.lib.tables.blocks import (
    POINT_BLOCK,
    STANDING,
    blocks_of,
    figure_marks,
    marks_note,
    method_rows,
    ratio_mark,
    repeats_note,
    status_words,
)
from scripts.lib.tables.points import POINT

_SPREAD = ("", "_low", "_high", "_spread")
_COLUMNS = (
    *POINT,
    "headline",
    *(f"{name}{part}" for name in ("per_request_tps", "aggregate_tps") for part in _SPREAD),
    *(
        "speedup",
        "speedup_low",
        "speedup_high",
        "baseline_validity",
        "noise_floor",
        "verdict",
        "verdict_reason",
    ),
    *STANDING,
)
"""Columns of the points table."""
_CAPTION = f"""Tokens per second at each concurrency c: of one request at c1 (mean over requests), of all
requests together above. In brackets: ratio to `{BASELINE}` under the same conditions, {ABSENT} where there
is none."""
_ONE_PERCENT = 0.01
_INTERVAL = f"""After it the 95% interval of that ratio. Noise: how far the repeats of `{BASELINE}` lie apart, (max - min) /
median."""


def throughput_table(points: pl.DataFrame) -> pl.DataFrame:
    """The points with their throughputs, intervals and verdicts, in reading order; `measured`: repeats behind
    the figures."""
    return points.select(*_COLUMNS, measured=pl.col("repeats").list.len())


def throughput_text(table: pl.DataFrame) -> list[str]:
    """The table as lines of markdown, one pipe table per block."""
    interval = _INTERVAL if table["speedup_low"].count() else ""
    lines = markdown.paragraph(f"{_CAPTION} {interval} {repeats_note(table)}")
    lines += marks_note(table)
    for block, rows in blocks_of(table, POINT_BLOCK):
        lines += ["", markdown.heading(block), "", *_block(rows)]
    return lines


def _block(rows: pl.DataFrame) -> list[str]:
    concurrencies = sorted(rows["concurrency"].unique())
    headers = ["method", "k", *(f"c{c} {METRICS[headline(c)].column}" for c in concurrencies)]
    body = []
    for names, of_method in method_rows(rows):
        by_concurrency = {row["concurrency"]: row for row in of_method.iter_rows(named=True)}
        body.append([*names, *(_figure(by_concurrency.get(c)) for c in concurrencies)])
    return markdown.table(headers, body, fixed=2)


def _figure(row: Mapping[str, object] | None) -> str:
    """`24.1 (1.53x ±4%)` with its marks, the status of a point without figures, or nothing for one that was not asked for."""
    if row is None:
        return ""
    value = row[row["headline"]]
    if value is None:
        return status_words(row)
    text = METRICS[row["headline"]].text(value)
    if row["method"] != BASELINE or row["synthetic"]:
        text += f" ({ratio_text(row)}{ratio_mark(row)})"
    elif row["noise_floor"] is not None:
        text += f" (noise {row['noise_floor']:.1%})"
    return f"{text} {marks}" if (marks := figure_marks(row)) else text


def ratio_text(row: Mapping[str, object]) -> str:
    """`1.53x ±4%` of a point, without the interval where there is none."""
    if row["speedup"] is None:
        return ABSENT
    text = f"{METRICS['speedup'].text(row['speedup'])}x"
    if row["speedup_low"]:
        # The interval is symmetric in ratios: both ends are the same factor away.
        width = math.sqrt(row["speedup_high"] / row["speedup_low"]) - 1
        text += f" ±{width:.1%}" if width < _ONE_PERCENT else f" ±{width:.0%}"
    return text
