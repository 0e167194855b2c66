"""What a token costs: energy, power, memory, and whether the GPU was held back meanwhile."""

from __future__ import annotations

import polars as pl

from scripts.lib.metrics import of_subject
from scripts.lib.tables import markdown
from scripts.lib.tables.blocks import marks_note, repeats_note
from scripts.lib.tables.figures import figures_table, figures_text

_METRICS = tuple(of_subject("power"))
_SHOWN = tuple(name for name in _METRICS if name != "gpu_energy_j")
_CAPTION = """Of the server's GPUs over the measured window: energy per output token, prompts included; power; the
most memory in use; clocks. At the power limit: share of samples in which that limit held the clocks back, as
it is meant to. Throttled: heat or the power supply did, so the figures of that cell are too low."""


def energy_table(points: pl.DataFrame) -> pl.DataFrame:
    """One row per point, see figures_table."""
    return figures_table(points, _METRICS)


def energy_text(table: pl.DataFrame) -> list[str]:
    """The table as lines of markdown."""
    if table.is_empty() or not any(table[name].count() for name in _METRICS):
        return markdown.paragraph(
            "No GPU was read: there is none here, or NVML does not answer (column `absent` of cells.csv says which)."
        )
    lines = markdown.paragraph(f"{_CAPTION} {repeats_note(table)}") + marks_note(table)
    return lines + figures_text(table, _SHOWN)
