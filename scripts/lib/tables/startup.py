"""How long a server takes to start, by phase."""

from __future__ import annotations

import polars as pl

from scripts.lib.metrics import of_subject
from scripts.lib.tables import markdown
from scripts.lib.tables.blocks import repeats_note, server_table, server_text
from scripts.lib.tables.compare import METHOD, SERVER_BLOCK

METRICS_SHOWN = tuple(of_subject("startup"))
_COLD = "cold_starts"
_PARTS_OF_LOADING = ("weights_load_s", "drafter_load_s")
_CAPTION = """Healthy and ready count from the start, by this workflow's clock; the other phases are
durations that the engine's log states, and need not add up to them."""
_COLD_CAPTION = """Some of these starts compiled what later ones find in a cache, which makes them slower: see cold_starts
in startup.csv before comparing."""


def startup_table(cells: pl.DataFrame) -> pl.DataFrame:
    """One row per server: medians over boots, in seconds; `cold_starts`: share of the boots whose compile cache was
    cold, by those that tell."""
    cold = (pl.col("compile_cache") == "cold").cast(pl.Float64)
    table = server_table(cells, METRICS_SHOWN)
    boots = cells.unique([*SERVER_BLOCK, *METHOD, "synthetic", "repeat"], maintain_order=True)
    shares = boots.group_by(*SERVER_BLOCK, *METHOD, "synthetic").agg(cold.mean().alias(_COLD))
    return table.join(shares, on=[*SERVER_BLOCK, *METHOD, "synthetic"], how="left", maintain_order="left")


def startup_text(table: pl.DataFrame) -> list[str]:
    """The table as lines of markdown."""
    cold = _COLD_CAPTION if (table[_COLD] > 0).any() else ""
    lines = markdown.paragraph(f"{_CAPTION} {cold} {repeats_note(table, 'server')}")
    # Where a log states the model's loading time, that of the weights is part of it.
    parts = _PARTS_OF_LOADING if table["model_load_s"].count() else ()
    return lines + server_text(table, [name for name in METRICS_SHOWN if name not in parts])
