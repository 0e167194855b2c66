"""How long a user waits: time to the first token, and per token after it."""

from __future__ import annotations

import polars as pl

from scripts.lib.metrics import of_subject
from scripts.lib.tables import markdown
from scripts.lib.tables.blocks import marks_note, repeats_note
from scripts.lib.tables.figures import figures_table, figures_text

_METRICS = tuple(of_subject("latency"))
_SHOWN = tuple(name for name in _METRICS if not name.endswith("_mean_s"))
_CAPTION = """Seconds at each concurrency c. ttft: from sending a request to its first token. tpot: per output token
after the first. The gap between two chunks of a stream is no such figure: under speculation a chunk
carries several tokens. A percentile stands here only where a cell has enough requests for it."""


def latency_table(points: pl.DataFrame) -> pl.DataFrame:
    """One row per point: medians over the repeats that count, each with its interval."""
    return figures_table(points, _METRICS)


def latency_text(table: pl.DataFrame) -> list[str]:
    """The table as lines of markdown. Figures that no point has are named instead of filling columns."""
    lines = markdown.paragraph(f"{_CAPTION} {repeats_note(table)}") + marks_note(table)
    return lines + figures_text(table, _SHOWN)
