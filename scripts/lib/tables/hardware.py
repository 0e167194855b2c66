"""Machines side by side: the same model, scenario and method on each."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from scripts.lib.cell import BASELINE
from scripts.lib.metrics import ABSENT, METRICS
from scripts.lib.tables import markdown
from scripts.lib.tables.blocks import blocks_of, figure_marks, marks_note, repeats_note, status_words
from scripts.lib.tables.points import POINT

_BLOCK = ("model", "max_model_len", "scenario", "synthetic")
_ROW = ("method", "k", "concurrency")
_CAPTION = f"""Tokens per second of each machine and engine: of one request at c1, of all requests together above. In
brackets the ratio to its own `{BASELINE}`, which tells what speculation is worth there; the figure before it tells
which machine is faster."""


def hardware_table(points: pl.DataFrame) -> pl.DataFrame:
    """The points in an order that puts the machines of one row next to each other; `tps`: the headline."""
    value = pl.when(pl.col("concurrency") == 1).then("per_request_tps").otherwise("aggregate_tps")
    table = points.select(
        *POINT,
        "headline",
        *("speedup", "verdict", "validity", "validity_reasons", "repeats_asked", "repeats_valid", "statuses"),
        tps=value,
        measured=pl.col("repeats").list.len(),
    )
    order = [*_BLOCK, pl.col("method") != BASELINE, *_ROW, "hardware", "engine"]
    return table.sort(order, maintain_order=True)


def hardware_text(table: pl.DataFrame) -> list[str]:
    """The table as lines of markdown, one column per machine and engine; what stands alone is left out."""
    shared = [(block, rows) for block, rows in blocks_of(table, _BLOCK) if len(_machines(rows)) > 1]
    if not shared:
        what = (
            "Nothing was measured."
            if table.is_empty()
            else "No model and scenario was measured on two machines."
        )
        return [f"{what} There is nothing to put side by side."]
    compared = pl.concat([rows for _, rows in shared])
    lines = markdown.paragraph(f"{_CAPTION} {repeats_note(compared)}") + marks_note(compared)
    for block, rows in shared:
        lines += ["", markdown.heading(block), "", *_block(rows)]
    return lines


def _machines(rows: pl.DataFrame) -> list[tuple[str, str]]:
    return rows.select("hardware", "engine").unique().sort("hardware", "engine").rows()


def _block(rows: pl.DataFrame) -> list[str]:
    machines, body = _machines(rows), []
    for (method, k, concurrency), of in rows.group_by(_ROW, maintain_order=True):
        found = {(row["hardware"], row["engine"]): row for row in of.iter_rows(named=True)}
        label = [method, ABSENT if method == BASELINE else str(k), str(concurrency)]
        body.append([*label, *(_figure(found.get(machine)) for machine in machines)])
    headers = ["method", "k", "c", *(f"{hardware} {engine}" for hardware, engine in machines)]
    return markdown.table(headers, body, fixed=3)


def _figure(row: Mapping[str, object] | None) -> str:
    if row is None:
        return ""
    if row["tps"] is None:
        return status_words(row)
    text = METRICS[row["headline"]].text(row["tps"])
    if row["method"] != BASELINE:
        text += f" ({METRICS['speedup'].text(row['speedup'])}{'x' if row['speedup'] is not None else ''})"
    return f"{text} {figure_marks(row)}".strip()
