"""Machines and engines side by side: the same model, scenario and method on each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from scripts.lib.cell import BASELINE
from scripts.lib.metrics import METRICS
from scripts.lib.tables import markdown
from scripts.lib.tables.blocks import (
    STANDING,
    blocks_of,
    figure_marks,
    marks_note,
    ratio_mark,
    repeats_note,
    status_words,
)
from scripts.lib.tables.compare import headline_tps
from scripts.lib.tables.points import POINT

_BLOCK = ("model", "max_model_len", "scenario", "synthetic")
_ROW = ("method", "k", "concurrency")
_CAPTION = f"""Tokens per second of each machine and engine: of one request at c1, of all requests together above. In
brackets the ratio to its own `{BASELINE}`, which tells what speculation is worth there; the figure before it tells
which machine is faster. Machines and engines share a table at one max_model_len; what else was not alike is said below it."""


def hardware_table(points: pl.DataFrame) -> pl.DataFrame:
    """The points in an order that puts the machines of one row next to each other; `tps`: the headline."""
    table = points.select(
        *POINT,
        *("headline", "speedup", "baseline_validity", "verdict", *STANDING, "max_num_seqs", "requests"),
        tps=headline_tps(),
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
        unlike = [f"- Not alike: {words}." for words in _unlike(rows.filter(pl.col("tps").is_not_null()))]
        lines += ["", *unlike] if unlike else []
    return lines


def _machines(rows: pl.DataFrame) -> list[tuple[str, str]]:
    return rows.select("hardware", "engine").unique().sort("hardware", "engine").rows()


def _block(rows: pl.DataFrame) -> list[str]:
    machines, body = _machines(rows), []
    for (method, k, concurrency), of in rows.group_by(_ROW, maintain_order=True):
        found = {(row["hardware"], row["engine"]): row for row in of.iter_rows(named=True)}
        label = [method, markdown.k_text(k), str(concurrency)]
        body.append([*label, *(_figure(found.get(machine)) for machine in machines)])
    headers = ["method", "k", "c", *(f"{hardware} {engine}" for hardware, engine in machines)]
    return markdown.table(headers, body, fixed=3)


def _unlike(rows: pl.DataFrame) -> Iterator[str]:
    """Conditions beside hardware and engine in which the machines differ, in words: those that no axis holds equal."""
    yield from _differing(rows, "max_num_seqs", "slots (max_num_seqs)")
    for concurrency in sorted(rows["concurrency"].unique()):
        at = rows.filter(pl.col("concurrency") == concurrency)
        yield from _differing(at, "requests", f"requests at c{concurrency}")


def _differing(rows: pl.DataFrame, name: str, label: str) -> Iterator[str]:
    told = {}
    for (hardware, engine), of in rows.sort("hardware", "engine").group_by(
        "hardware", "engine", maintain_order=True
    ):
        values = sorted(map(_told, of[name].unique()), key=lambda text: (len(text), text))
        told[f"{hardware} {engine}"] = " or ".join(values)
    if len(set(told.values())) > 1:
        yield f"{label} {', '.join(f'{words} ({machine})' for machine, words in told.items())}"


def _told(value: object) -> str:
    return "not told" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _figure(row: Mapping[str, object] | None) -> str:
    if row is None:
        return ""
    if row["tps"] is None:
        return status_words(row)
    text = METRICS[row["headline"]].text(row["tps"])
    if row["method"] != BASELINE:
        ratio = METRICS["speedup"].text(row["speedup"]) + ("x" if row["speedup"] is not None else "")
        text += f" ({ratio}{ratio_mark(row)})"
    return f"{text} {figure_marks(row)}".strip()
