"""Total throughput against concurrency, one line for each method and k."""

from __future__ import annotations

import altair as alt
import polars as pl

from scripts.lib.metrics import METRICS
from scripts.lib.plots import look
from scripts.lib.plots.choice import fewer_series
from scripts.lib.plots.figures import curve_point
from scripts.lib.plots.marks import curves, in_panels, reading
from scripts.lib.plots.names import TITLES
from scripts.lib.plots.naming import SETTING, named
from scripts.lib.plots.panels import split

TITLE = TITLES["throughput"]
_METRIC = "aggregate_tps"


def draw(points: pl.DataFrame) -> alt.TopLevelMixin:
    """One panel for each setting; a method with many k is shown with its best."""
    frame = named(points).filter(pl.col(_METRIC).is_not_null())
    if frame.is_empty():
        return look.note(TITLE, ["No point has a throughput."])
    colours = look.palette(frame.select("method", "series").iter_rows())
    chosen = fewer_series(frame)
    panels = split(chosen.frame, SETTING)
    rows = [curve_point(row, _METRIC, "concurrency") for row in panels.frame.iter_rows(named=True)]
    names = list(dict.fromkeys(row["series"] for row in rows))
    x = alt.X(
        "x:Q",
        title="concurrency (requests in flight)",
        scale=alt.Scale(type="log", base=2, nice=False, padding=14),
        axis=alt.Axis(values=sorted({row["x"] for row in rows}), format="d", grid=False),
    )
    y = alt.Y("y:Q", title=METRICS[_METRIC].header, scale=alt.Scale(zero=True))
    colour = alt.Color(
        "series:N", title="method", sort=names, scale=colours.colour(names), legend=look.line_legend()
    )
    dash = alt.StrokeDash(
        "series:N", title="method", sort=names, scale=colours.dash(names), legend=look.line_legend()
    )
    chart = in_panels(curves(rows, x, y, colour, dash), panels, 2, (330, 230))
    return look.titled(chart, TITLE, [panels.shared, reading(points, rows), chosen.note, panels.note])
