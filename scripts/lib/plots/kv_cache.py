"""What a drafter costs in KV cache: tokens that are left, change against the baseline, requests that fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import polars as pl

from scripts.lib.cell import BASELINE
from scripts.lib.metrics import METRICS
from scripts.lib.plots import look
from scripts.lib.plots.marks import side_by_side, values
from scripts.lib.plots.names import TITLES
from scripts.lib.plots.panels import split
from scripts.lib.plots.servers import servers
from scripts.lib.tables.compare import SERVER_BLOCK

TITLE = TITLES["kv_cache"]
_METRICS = ("kv_cache_tokens", "kv_cache_change", "max_concurrency")


def draw(points: pl.DataFrame) -> alt.TopLevelMixin:
    """One panel for each hardware, engine, model and max_model_len: token figures compare at equal length only."""
    frame = servers(points, _METRICS).filter(pl.col("kv_cache_tokens").is_not_null())
    if frame.is_empty():
        return look.note(TITLE, ["No server stated the size of its KV cache."])
    panels = split(frame, SERVER_BLOCK)
    rows = [_row(row) for row in panels.frame.iter_rows(named=True)]
    lines = [
        panels.shared,
        "As each start-up log states it; in brackets the change against none at the same max_model_len, then how many requests of "
        "full length fit at once. On hybrid models go by what fits, not by tokens.",
        panels.note,
    ]
    return look.titled(side_by_side(rows, _bars, 2), TITLE, lines)


def _row(row: Mapping[str, object]) -> dict[str, object]:
    tokens, change, fits = (row[name] for name in _METRICS)
    text = METRICS["kv_cache_tokens"].text(tokens)
    if change is not None and row["method"] != BASELINE:
        text += f" ({change:+.1f}%)"
    if fits is not None:
        text += f", {METRICS['max_concurrency'].text(fits)} fit"
    return {
        "panel": row["panel"],
        "series": row["series"],
        "value": tokens,
        "text": text,
        "baseline": row["method"] == BASELINE,
        "label": f"{row['series']}: {text}",
    }


def _bars(rows: Sequence[Mapping[str, object]]) -> alt.LayerChart:
    """A horizontal bar for each row with its text behind it; the baseline's in grey."""
    axis = alt.Axis(format="~s", tickCount=4, grid=False)
    base = alt.Chart().encode(
        # Room for the text behind the longest bar.
        x=alt.X(
            "value:Q",
            title=METRICS["kv_cache_tokens"].header,
            axis=axis,
            scale=alt.Scale(domain=[0, 1.5 * max(row["value"] for row in rows)], nice=False),
        ),
        y=alt.Y("series:N", title=None, sort=list(dict.fromkeys(row["series"] for row in rows))),
        description=alt.Description("label:N"),
        tooltip=alt.Tooltip("label:N", title=" "),
    )
    bar = base.mark_bar(size=16).encode(color=look.baseline_or("datum.baseline"))
    text = base.mark_text(aria=False, align="left", dx=5, fontSize=11, color=look.INK).encode(text="text:N")
    return alt.layer(bar, text, data=values(rows)).properties(width=340, height=alt.Step(26))
