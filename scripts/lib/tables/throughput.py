"""The main table (study A's): one row per method and k, one column per concurrency, each figure as a ratio to
`none`."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from scripts.lib.cell import BASELINE
from scripts.lib.metrics import ABSENT, METRICS, headline
from scripts.lib.tables import markdown
from scripts.lib.tables.blocks import blocks_of, method_rows, repeats_note
from scripts.lib.tables.compare import (
    CELL_BLOCK,
    METHOD,
    headline_tps,
    in_reading_order,
    over_repeats,
    usable,
)

_KEYS = (*CELL_BLOCK, *METHOD, "concurrency")
_METRICS = ("per_request_tps", "aggregate_tps", "speedup")
_PARTIAL = "!"
_CAPTION = f"""Tokens per second at each concurrency c: of one request at c1 (mean over requests), of all
requests together above. In brackets: ratio to `{BASELINE}` under the same conditions, {ABSENT} where there
is none."""


def throughput_table(cells: pl.DataFrame) -> pl.DataFrame:
    """One row per block, method, k and concurrency: medians over repeats.

    `headline` names the metric that `speedup` compares; `speedup` is the median of the ratios of each repeat
    to its own baseline; `partial` marks figures behind which requests or whole repeats are missing."""
    rows = over_repeats(usable(cells), _KEYS, _METRICS, headline_tps().is_not_null())
    partial = (pl.col("measured") > 0) & ((pl.col("incomplete") > 0) | (pl.col("measured") < pl.col("asked")))
    named = pl.when(pl.col("concurrency") == 1).then(pl.lit(headline(1))).otherwise(pl.lit(headline(2)))
    return in_reading_order(rows.with_columns(headline=named, partial=partial)).select(
        *_KEYS, "headline", *_METRICS, "measured", "asked", "partial", "statuses"
    )


def throughput_text(table: pl.DataFrame) -> list[str]:
    """The table as lines of markdown, one pipe table per block."""
    lines = markdown.paragraph(f"{_CAPTION} {repeats_note(table)}")
    if table["partial"].any():
        lines += markdown.paragraph(
            f"{_PARTIAL} some requests failed, or repeats gave no result: see failures.md."
        )
    for block, rows in blocks_of(table, CELL_BLOCK):
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
    """`24.1 (1.53x)`, the status of a cell without figures, or nothing for a cell that was not asked for."""
    if row is None:
        return ""
    if not row["measured"]:
        return "/".join(row["statuses"]) or ABSENT
    text = METRICS[row["headline"]].text(row[row["headline"]])
    if row["method"] != BASELINE:
        speedup = METRICS["speedup"].text(row["speedup"])
        text += f" ({speedup}x)" if row["speedup"] is not None else f" ({ABSENT})"
    return f"{text} {_PARTIAL}" if row["partial"] else text
