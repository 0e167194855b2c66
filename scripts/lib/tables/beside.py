"""Two servers on one device: what each pays for the other."""

from __future__ import annotations

import polars as pl

from scripts.lib.metrics import ABSENT, METRICS
from scripts.lib.record import MEASURED
from scripts.lib.tables import markdown
from scripts.lib.tables.blocks import validity_mark, validity_note
from scripts.lib.tables.compare import CONDITIONS, headline_tps
from scripts.lib.tables.points import counting_cells

_CAPTION = """Tokens per second of a server that shares its device with another one: of one request at c1, of all requests together
above, medians over the repeats that count. Alone: the same method with the device to itself, and by default with all its
memory. An idle neighbour takes memory only; a busy one takes time as well, and its own tokens per second stand beside."""
_NONE = ["No server had another one beside it (key `beside` of a method)."]
_ROW = (*CONDITIONS, "method", "k", "synthetic", "beside_method", "beside")


def beside_table(cells: pl.DataFrame) -> pl.DataFrame:
    """One row per point with a second server: `tps` (the headline) and `beside_tps`, `alone_tps` of the same method without one
    (null where the sweep has none) and `change_percent` against it, with the validity of both."""
    tps = counting_cells(cells).filter(pl.col("status") == MEASURED).with_columns(tps=headline_tps())
    alone = (
        tps.filter(pl.col("beside").is_null())
        .group_by(*CONDITIONS, "method", "k", "synthetic")
        .agg(alone_tps=pl.col("tps").median(), alone_validity=pl.col("validity").first())
        .rename({"method": "beside_method"})
    )
    return (
        tps.filter(pl.col("beside").is_not_null())
        .group_by(_ROW)
        .agg(
            pl.col("tps").median(),
            pl.col("beside_tps").median(),
            pl.col("validity").first(),
            repeats=pl.len(),
        )
        .join(alone, on=[*CONDITIONS, "beside_method", "k", "synthetic"], how="left")
        .with_columns(change_percent=100 * (pl.col("tps") / pl.col("alone_tps") - 1))
        .sort(_ROW)
    )


def beside_text(table: pl.DataFrame) -> list[str]:
    """The table as lines of markdown."""
    if table.is_empty():
        return _NONE
    marks = map(validity_mark, [*table["validity"], *table["alone_validity"]])
    lines = markdown.paragraph(_CAPTION) + validity_note(marks)
    headers = ["model", "method", "k", "c", "beside", "tok/s", "alone", "change", "its tok/s"]
    for (hardware, engine, length, scenario), rows in table.group_by(
        "hardware", "engine", "max_model_len", "scenario", maintain_order=True
    ):
        lines += ["", f"## {hardware}, {engine}, length {length}, {scenario}", ""]
        body = [_line(row) for row in rows.iter_rows(named=True)]
        lines += markdown.table(headers, body, fixed=5)
    return lines


def _line(row: dict) -> list[str]:
    show = METRICS["aggregate_tps"].text
    change = ABSENT if row["change_percent"] is None else f"{row['change_percent']:+.0f}%"
    method = f"{row['method']} (synthetic)" if row["synthetic"] else row["method"]
    names = [row["model"], method, markdown.k_text(row["k"]), str(row["concurrency"]), row["beside"]]
    own = f"{show(row['tps'])} {validity_mark(row['validity'])}".strip()
    alone = f"{show(row['alone_tps'])} {validity_mark(row['alone_validity'])}".strip()
    return [*names, own, alone, change, show(row["beside_tps"])]
