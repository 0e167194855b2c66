"""What a request of each scenario takes from the KV cache, in whole pages: a drafter may raise the page size, and
then short requests waste most of a page."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from scripts.lib import formulas
from scripts.lib.cell import BASELINE
from scripts.lib.metrics import ABSENT
from scripts.lib.tables import markdown
from scripts.lib.tables.blocks import blocks_of, repeats_note
from scripts.lib.tables.compare import CELL_BLOCK, METHOD, SERVER_BLOCK, in_reading_order

_CAPTION = """For a mean request of each scenario, prompt and answer together. Page: tokens of one KV block. Takes: the pages of
such a request, in tokens, and against `none`. Fit: requests of this length at once, by the pages of the
whole cache; not known for hybrid models, whose layers keep pages of different kinds."""
_COLUMNS = {
    "block_size_tokens": "page (tokens)",
    "pages": "pages",
    "taken_tokens": "takes (tokens)",
    "taken_ratio": "vs none (x)",
    "requests_that_fit": "fit (requests)",
}
SCHEMA: dict[str, pl.DataType] = {
    name: pl.Int64() if name in ("max_model_len", "k") else pl.String() for name in (*CELL_BLOCK, *METHOD)
} | {
    "synthetic": pl.Boolean(),
    "request_tokens": pl.Float64(),
    "block_size_tokens": pl.Int64(),
    "pages": pl.Int64(),
    "taken_tokens": pl.Int64(),
    "taken_ratio": pl.Float64(),
    "requests_that_fit": pl.Int64(),
    "hybrid": pl.Boolean(),
    "measured": pl.Int64(),
}


def kv_requests_table(cells: pl.DataFrame) -> pl.DataFrame:
    """One row per server and scenario. All requests are taken to be as long as the mean one of `none`, so that a
    method is not judged by answers that happened to be shorter."""
    servers = (*SERVER_BLOCK, *METHOD, "synthetic")
    facts = cells.group_by(servers, maintain_order=True).agg(
        pl.col("block_size_tokens").drop_nulls().median(),
        pl.col("kv_cache_tokens").drop_nulls().median(),
        pl.col("hybrid").drop_nulls().first().fill_null(value=False),
    )
    length = (pl.col("prompt_tokens") + pl.col("completion_tokens")) / pl.col("completed")
    lengths = (
        cells.filter(pl.col("method") == BASELINE, ~pl.col("synthetic"))
        .group_by(CELL_BLOCK)
        .agg(request_tokens=length.median())
    )
    rows = (
        cells.group_by(*servers, "scenario", maintain_order=True)
        .agg(measured=pl.col("repeat").filter(pl.col("status") == "measured").n_unique())
        .join(facts, on=servers, how="left")
        .join(lengths, on=CELL_BLOCK, how="left")
    )
    added = [_taken(row) for row in rows.iter_rows(named=True)]
    pages = pl.DataFrame(added, schema=["pages", "taken_tokens", "requests_that_fit"], orient="row")
    table = pl.concat([rows.drop("kv_cache_tokens"), pages], how="horizontal")
    baseline = table.filter(pl.col("method") == BASELINE, ~pl.col("synthetic")).select(
        *CELL_BLOCK, _reference="taken_tokens"
    )
    table = table.join(baseline, on=CELL_BLOCK, how="left").with_columns(
        taken_ratio=pl.col("taken_tokens") / pl.col("_reference")
    )
    return in_reading_order(table).select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())


def _taken(row: Mapping[str, object]) -> tuple[int | None, int | None, int | None]:
    """(pages, their tokens, requests that fit)."""
    length, page, cache = (row[name] for name in ("request_tokens", "block_size_tokens", "kv_cache_tokens"))
    if not length or not page:
        return None, None, None
    pages = formulas.pages(length, int(page))
    fit = int(cache // page) // pages if cache and not row["hybrid"] else None
    return pages, pages * int(page), fit


def kv_requests_text(table: pl.DataFrame) -> list[str]:
    """The table as lines of markdown."""
    lines = markdown.paragraph(f"{_CAPTION} {repeats_note(table, 'server')}")
    if not table["pages"].count():
        return [*lines, "", "No server's log states how many tokens a page holds."]
    for block, rows in blocks_of(table, (*CELL_BLOCK, "synthetic")):
        body = [_row(row) for row in rows.iter_rows(named=True)]
        length = rows["request_tokens"].max()
        lines += ["", markdown.heading(block), ""]
        lines += [f"Requests of {length:,.0f} tokens.", ""] if length else []
        lines += markdown.table(["method", "k", *_COLUMNS.values()], body, fixed=2)
    return lines


def _row(row: Mapping[str, object]) -> list[str]:
    figures = []
    for name in _COLUMNS:
        value, decimals = row[name], 2 if name == "taken_ratio" else 0
        figures.append(ABSENT if value is None else f"{value:,.{decimals}f}")
    return [row["method"], markdown.k_text(row["k"]), *figures]
