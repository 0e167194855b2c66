"""Speed-up against the number of speculative tokens, one line for each concurrency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import polars as pl

from scripts.lib.cell import BASELINE
from scripts.lib.metrics import METRICS
from scripts.lib.plots import look
from scripts.lib.plots.figures import curve_point
from scripts.lib.plots.marks import curves, in_panels, reading, values
from scripts.lib.plots.names import TITLES
from scripts.lib.plots.naming import SETTING, named
from scripts.lib.plots.panels import split

TITLE = TITLES["k_curve"]
_METRIC = "speedup"


def draw(points: pl.DataFrame) -> alt.TopLevelMixin:
    """One panel for each setting and method that was measured at two k or more."""
    frame = named(points).filter(pl.col("method") != BASELINE, pl.col(_METRIC).is_not_null())
    several = (
        frame.group_by(*SETTING, "method", "synthetic")
        .agg(_ks=pl.col("k").n_unique())
        .filter(pl.col("_ks") > 1)
    )
    frame = frame.join(several, on=[*SETTING, "method", "synthetic"], how="semi", maintain_order="left")
    if frame.is_empty():
        return look.note(TITLE, ["No method has a speed-up at more than one k, so there is no curve."])
    named_methods = pl.when("synthetic").then(pl.col("method") + " (synthetic)").otherwise("method")
    panels = split(frame.with_columns(method=named_methods), (*SETTING, "method"))
    rows = [_row(row) for row in panels.frame.iter_rows(named=True)]
    columns = min(3, panels.frame["method"].n_unique())
    chart = in_panels(_curves(rows), panels, columns, (230, 190), y="shared")
    lines = [
        panels.shared,
        f"{reading(points, rows)} Above the line at 1: faster than no speculation.",
        panels.note,
    ]
    return look.titled(chart, TITLE, lines)


def _row(row: Mapping[str, object]) -> dict[str, object]:
    concurrency = row["concurrency"]
    return curve_point(row, _METRIC, "k") | {"series": str(concurrency), "concurrency": concurrency}


def _curves(rows: Sequence[Mapping[str, object]]) -> alt.LayerChart:
    concurrencies = sorted({row["concurrency"] for row in rows})
    names = [str(number) for number in concurrencies]
    x = alt.X(
        "x:Q",
        title="k (speculative tokens)",
        scale=alt.Scale(nice=False, padding=14),
        axis=alt.Axis(values=sorted({row["x"] for row in rows}), format="d", grid=False),
    )
    y = alt.Y("y:Q", title=METRICS[_METRIC].header, scale=alt.Scale(zero=False, padding=10))
    colour = alt.Color(
        "series:N",
        title="concurrency",
        sort=names,
        scale=alt.Scale(domain=names, range=_ramp(len(names))),
        legend=look.line_legend(),
    )
    level = (
        alt.Chart(values([{}]))
        .mark_rule(aria=False, color=look.MUTED, strokeDash=[2, 2])
        .encode(y=alt.datum(1))
    )
    drawn = curves(rows, x, y, colour)
    return alt.layer(level, *drawn.layer, data=drawn.data)


def _ramp(count: int) -> list[str]:
    """Viridis without its lightest end: order can be seen in grey, too."""
    steps = ("#440154", "#3b528b", "#21918c", "#5ec962", "#c8b020")
    if count == 1:
        return [steps[1]]
    return [steps[round(place * (len(steps) - 1) / (count - 1))] for place in range(count)]
