"""The layers that several plots share: lines through points that show their state and their interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import altair as alt
import polars as pl

from scripts.lib.plots import look
from scripts.lib.plots.naming import CLEAR, INVALID, repeats_words
from scripts.lib.plots.panels import Panels

_POINT_SIZE = 62


def values(rows: Sequence[Mapping[str, object]]) -> alt.Data:
    """Rows as the chart's own data; rows hold what is drawn and nothing else, since it is part of the file."""
    return alt.Data(values=[dict(row) for row in rows])


def curves(
    rows: Sequence[Mapping[str, object]],
    x: alt.X,
    y: alt.Y,
    colour: alt.Color,
    dash: alt.StrokeDash | None = None,
    order: str = "x",
) -> alt.LayerChart:
    """Lines, intervals and points over rows with x, y, low, high, series, state and label.

    Lines join trusted and untrusted points alike; the point's shape says which is which."""
    base = alt.Chart()
    line = base.mark_line(aria=False, strokeWidth=1.8, opacity=0.85).encode(
        x=x, y=y, color=colour, detail="series:N", order=alt.Order(f"{order}:Q")
    )
    if dash is not None:
        line = line.encode(strokeDash=dash)
    layers = [line]
    if any(row["low"] is not None for row in rows):
        layers.append(
            base.mark_rule(aria=False, strokeWidth=1.6).encode(
                x=x, y=alt.Y("low:Q"), y2="high:Q", color=colour
            )
        )
    return alt.layer(*layers, dots(base, rows, x, y, colour), data=values(rows))


def reading(points: pl.DataFrame, rows: Sequence[Mapping[str, object]]) -> str:
    """How to read the points of `rows`: repeats, intervals where they are drawn, shapes that occur."""
    drawn = any(row.get("low") is not None for row in rows)
    parts = [
        repeats_words(points),
        "Bars: 95% intervals." if drawn else "",
        look.state_words(row["state"] for row in rows),
    ]
    return " ".join(part for part in parts if part)


def dots(
    base: alt.Chart, rows: Sequence[Mapping[str, object]], x: alt.X, y: alt.Y, colour: alt.Color
) -> alt.Chart:
    """Points whose shape and filling say what their figure may be used for."""
    # The same scale and legend as the lines', so that they are one.
    same = colour.to_dict()
    filling = alt.Fill(**same)
    return base.mark_point(size=_POINT_SIZE, strokeWidth=1.8, opacity=1).encode(
        x=x,
        y=y,
        stroke=alt.Stroke(**same),
        fill=alt.when(f"datum.state == '{CLEAR}'").then(filling).otherwise(alt.value("white")),
        shape=look.state_shape(row["state"] for row in rows),
        description=alt.Description("label:N"),
        tooltip=alt.Tooltip("label:N", title=" "),
    )


def in_panels(
    chart: alt.LayerChart, panels: Panels, columns: int, size: tuple[int, int], y: str = "independent"
) -> alt.Chart:
    """The chart once for each panel, `size` (width, height) in pixels; a single panel is larger and needs no heading.

    `y`: shared where figures compare across panels."""
    width, height = size
    if panels.count == 1:
        return chart.properties(width=min(2 * width, 640), height=round(height * 1.35))
    order = panels.frame["panel"].unique(maintain_order=True).to_list()
    return (
        chart.properties(width=width, height=height)
        .facet(facet=alt.Facet("panel:N", sort=order), columns=min(columns, panels.count), spacing=22)
        .resolve_scale(x="independent", y=y)
        .resolve_axis(x="independent", y="independent")
    )


def side_by_side(
    rows: Sequence[Mapping[str, object]],
    draw: Callable[[Sequence[Mapping[str, object]]], alt.LayerChart],
    columns: int,
) -> alt.TopLevelMixin:
    """A chart for each panel, with rows and axes of its own; a single one needs no heading."""
    panels: dict[object, list[Mapping[str, object]]] = {}
    for row in rows:
        panels.setdefault(row["panel"], []).append(row)
    charts = [draw(part) for part in panels.values()]
    if len(charts) == 1:
        return charts[0]
    headings = [alt.TitleParams(text=str(name), fontSize=12, anchor="start", offset=8) for name in panels]
    headed = [chart.properties(title=title) for chart, title in zip(charts, headings, strict=True)]
    return alt.concat(*headed, columns=columns, spacing=30)


def trusted(row: Mapping[str, object]) -> bool:
    """Whether the figure may be ranked."""
    return row["validity"] == "VALID" and row["state"] != INVALID and not row["synthetic"]
