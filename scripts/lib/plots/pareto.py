"""What one user gets against what the device gives: the trade that choosing a concurrency makes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import altair as alt
import polars as pl

from scripts.lib.metrics import METRICS
from scripts.lib.plots import look
from scripts.lib.plots.choice import fewer_series
from scripts.lib.plots.figures import figure, standing
from scripts.lib.plots.marks import dots, in_panels, reading, trusted, values
from scripts.lib.plots.names import TITLES
from scripts.lib.plots.naming import SETTING, named
from scripts.lib.plots.panels import split

TITLE = TITLES["pareto"]
_USER, _SERVER = "per_request_tps", "aggregate_tps"


def front(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that no other point beats in one coordinate without losing in the other, by falling x."""
    kept: list[tuple[float, float]] = []
    for x, y in sorted(set(points), reverse=True):
        if not kept or y > kept[-1][1]:
            kept.append((x, y))
    return kept


def draw(points: pl.DataFrame) -> alt.TopLevelMixin:
    """One panel for each setting; a number beside a point is its concurrency, the grey line the Pareto front.

    The total is divided by the column `devices` (servers.with_devices) where there is one."""
    frame = named(points).filter(pl.col(_USER).is_not_null(), pl.col(_SERVER).is_not_null())
    if frame.is_empty():
        return look.note(TITLE, ["No point has a throughput."])
    colours = look.palette(frame.select("method", "series").iter_rows())
    chosen = fewer_series(frame)
    panels = split(chosen.frame, SETTING)
    rows = [_row(row, row.get("devices", 1)) for row in panels.frame.iter_rows(named=True)]
    chart = in_panels(_layers(rows, colours), panels, 2, (330, 260))
    lines = [
        panels.shared,
        f"{reading(points, rows)} Numbers: concurrency. Grey: the Pareto front of valid points; up and to the right is better.",
        chosen.note,
        panels.note,
    ]
    return look.titled(chart, TITLE, lines)


def _row(row: Mapping[str, object], devices: int) -> dict[str, object]:
    per_device = row[_SERVER] / devices
    shared = f" on {devices} devices" if devices > 1 else ""
    return {
        "panel": row["panel"],
        "series": row["series"],
        "state": row["state"],
        "concurrency": row["concurrency"],
        "x": row[_USER],
        "y": per_device,
        "x_low": row[f"{_USER}_low"],
        "x_high": row[f"{_USER}_high"],
        "low": None if row[f"{_SERVER}_low"] is None else row[f"{_SERVER}_low"] / devices,
        "high": None if row[f"{_SERVER}_high"] is None else row[f"{_SERVER}_high"] / devices,
        "trusted": trusted(row),
        "label": f"{row['series']}, concurrency {row['concurrency']}: {figure(row, _USER)} per user, "
        f"{METRICS[_SERVER].text(per_device)} tok/s per device{shared}, {standing(row)}",
    }


def _layers(rows: Sequence[Mapping[str, object]], colours: look.Palette) -> alt.LayerChart:
    names = list(dict.fromkeys(row["series"] for row in rows))
    x = alt.X(
        "x:Q",
        title=f"per user: {METRICS[_USER].header}",
        scale=alt.Scale(zero=False, nice=True, padding=16),
        axis=alt.Axis(tickCount=7),
    )
    y = alt.Y("y:Q", title=f"per device: {METRICS[_SERVER].header}", scale=alt.Scale(zero=True))
    colour = alt.Color(
        "series:N", title="method", sort=names, scale=colours.colour(names), legend=look.line_legend()
    )
    dash = alt.StrokeDash(
        "series:N", title="method", sort=names, scale=colours.dash(names), legend=look.line_legend()
    )
    # Rows of both kinds in one data set: facets divide one source only.
    everything = [row | {"kind": "point"} for row in rows] + _fronts(rows)
    base = alt.Chart()
    best = (
        base.transform_filter("datum.kind == 'front'")
        .mark_line(
            aria=False, strokeWidth=9, opacity=0.22, color="#555555", strokeJoin="round", strokeCap="round"
        )
        .encode(x=x, y=y, order=alt.Order("x:Q"))
    )
    found = base.transform_filter("datum.kind == 'point'")
    line = found.mark_line(aria=False, strokeWidth=1.6, opacity=0.85).encode(
        x=x, y=y, color=colour, strokeDash=dash, order=alt.Order("concurrency:Q")
    )
    known = found.transform_filter("isValid(datum.low) && isValid(datum.x_low)").mark_rule(
        aria=False, strokeWidth=1.4
    )
    tall = known.encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=colour)
    wide = known.encode(x=alt.X("x_low:Q"), x2="x_high:Q", y=y, color=colour)
    numbers = found.mark_text(aria=False, dx=9, dy=-8, fontSize=10, color="#555555").encode(
        x=x, y=y, text="concurrency:Q"
    )
    return alt.layer(
        best, line, tall, wide, dots(found, rows, x, y, colour), numbers, data=values(everything)
    )


def _fronts(rows: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    panels = dict.fromkeys(row["panel"] for row in rows)
    return [
        {"panel": panel, "kind": "front", "x": x, "y": y}
        for panel in panels
        for x, y in front((row["x"], row["y"]) for row in rows if row["panel"] == panel and row["trusted"])
    ]
