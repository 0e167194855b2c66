"""How long a server takes to start, by phase."""

from __future__ import annotations

import polars as pl

from scripts.lib.metrics import of_subject
from scripts.lib.tables import markdown
from scripts.lib.tables.blocks import repeats_note, server_table, server_text

METRICS_SHOWN = tuple(of_subject("startup"))
_PARTS_OF_LOADING = ("weights_load_s", "drafter_load_s")
_CAPTION = """Healthy and ready count from the start, by this workflow's clock; the other phases are
durations that the engine's log states, and need not add up to them."""


def startup_table(cells: pl.DataFrame) -> pl.DataFrame:
    """One row per server: medians over boots, in seconds."""
    return server_table(cells, METRICS_SHOWN)


def startup_text(table: pl.DataFrame) -> list[str]:
    """The table as lines of markdown."""
    lines = markdown.paragraph(f"{_CAPTION} {repeats_note(table, 'server')}")
    # Where a log states the model's loading time, that of the weights is part of it.
    parts = _PARTS_OF_LOADING if table["model_load_s"].count() else ()
    return lines + server_text(table, [name for name in METRICS_SHOWN if name not in parts])
