"""How far into a draft tokens are kept: acceptance by position."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import polars as pl

from scripts.lib.metrics import METRICS
from scripts.lib.plots import look
from scripts.lib.plots.choice import fewer_series
from scripts.lib.plots.figures import standing
from scripts.lib.plots.marks import curves, in_panels, reading
from scripts.lib.plots.names import TITLES
from scripts.lib.plots.naming import SETTING, named
from scripts.lib.plots.panels import split

TITLE = TITLES["acceptance"]
_METRIC = "acceptance_per_position"


def draw(points: pl.DataFrame) -> alt.TopLevelMixin:
    """One panel for each setting, at the lowest concurrency at which each method's positions are known."""
    known = named(points).filter(pl.col(_METRIC).list.len() > 0)
    if known.is_empty():
        return look.note(TITLE, ["No server reported acceptance by position."])
    lowest = known.filter(pl.col("concurrency") == pl.col("concurrency").min().over(*SETTING, "series"))
    chosen = fewer_series(lowest)
    colours = look.palette(known.select("method", "series").iter_rows())
    panels = split(chosen.frame, SETTING)
    rows = [position for row in panels.frame.iter_rows(named=True) for position in _positions(row)]
    names = list(dict.fromkeys(row["series"] for row in rows))
    x = alt.X(
        "x:Q",
        title="position in the draft",
        scale=alt.Scale(nice=False, padding=14),
        axis=alt.Axis(values=sorted({row["x"] for row in rows}), format="d", grid=False),
    )
    y = alt.Y("y:Q", title="share of drafts whose token was kept", scale=alt.Scale(domain=[0, 1]))
    colour = alt.Color(
        "series:N", title="method", sort=names, scale=colours.colour(names), legend=look.line_legend()
    )
    dash = alt.StrokeDash(
        "series:N", title="method", sort=names, scale=colours.dash(names), legend=look.line_legend()
    )
    chart = in_panels(curves(rows, x, y, colour, dash), panels, 2, (330, 210))
    concurrencies = sorted(panels.frame["concurrency"].unique())
    at = " or ".join(str(number) for number in concurrencies)
    lines = [
        panels.shared,
        f"{METRICS[_METRIC].formula}; at concurrency {at}, the lowest measured.",
        reading(panels.frame, rows),
        chosen.note,
        panels.note,
    ]
    return look.titled(chart, TITLE, lines)


def _positions(row: Mapping[str, object]) -> list[dict[str, object]]:
    return [
        {
            "panel": row["panel"],
            "series": row["series"],
            "state": row["state"],
            "x": position,
            "y": share,
            "low": None,
            "high": None,
            "label": f"{row['series']}, position {position}: {share:.0%} kept, {standing(row)}",
        }
        for position, share in enumerate(row[_METRIC], start=1)
        if share is not None
    ]
