"""Heat map: speed-up of every method and k at every concurrency."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import altair as alt
import polars as pl

from scripts.lib.cell import BASELINE
from scripts.lib.metrics import METRICS
from scripts.lib.plots import look
from scripts.lib.plots.figures import figure, interval, label, standing
from scripts.lib.plots.marks import values
from scripts.lib.plots.names import TITLES
from scripts.lib.plots.naming import CLEAR, INVALID, SETTING, UNFAIR, named, reason_names, repeats_words
from scripts.lib.plots.panels import Panels, split

TITLE = TITLES["speedup"]
_WORDS = "Full colour: a clear difference; pale: unresolved or a single run; dashed: not to be ranked."
_LEAST_RANGE = 0.25
_STEP_X, _STEP_Y = 104, 40


def draw(points: pl.DataFrame) -> alt.TopLevelMixin:
    """One panel for each setting: methods down, concurrency across, the ratio to `none` in each field.

    Only resolved differences are in full colour; every field says in words what its figure may be used for."""
    if points["speedup"].drop_nulls().is_empty() and points["per_request_tps"].drop_nulls().is_empty():
        return look.note(TITLE, ["No point has a throughput, so there is nothing to compare."])
    panels = split(named(points), SETTING)
    rows = [_field(row) for row in panels.frame.iter_rows(named=True)]
    lines = [
        panels.shared,
        f"Ratio of throughput, per request at concurrency 1, total above. {repeats_words(points)} {_WORDS}",
        panels.note,
    ]
    return look.titled(_chart(rows, panels), TITLE, lines)


def _field(row: Mapping[str, object]) -> dict[str, object]:
    baseline, untrusted = row["method"] == BASELINE, row["state"] in (INVALID, UNFAIR)
    shown = figure(row, row["headline"] if baseline else "speedup")
    if row["state"] == CLEAR:
        below = "" if baseline else interval(row, "speedup") or standing(row)
    else:
        below = _first(reason_names(row["validity_reasons"])) if untrusted else row["state"]
    if row[row["headline"]] is None:
        shown, below = "/".join(row["statuses"]) or shown, ""
    ratio = None if baseline or untrusted else row["speedup"]
    return {
        "panel": row["panel"],
        "series": row["series"],
        "concurrency": row["concurrency"],
        "shown": shown,
        "below": below,
        "ratio": ratio and math.log2(ratio),
        "kind": "baseline" if baseline and not untrusted else "untrusted" if untrusted else "ratio",
        "clear": row["state"] == CLEAR,
        "label": label(row, row["headline"] if baseline else "speedup"),
    }


def _first(names: Sequence[str]) -> str:
    """The first of several, and how many more there are: the field is narrow."""
    more = f" +{len(names) - 1}" if len(names) > 1 else ""
    return f"{names[0]}{more}" if names else ""


def _ticks(span: float) -> list[float]:
    """Round ratios within the colours' range, as the logarithms that the colours stand for."""
    ratios = (0.25, 0.5, 0.75, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 4)
    return [math.log2(ratio) for ratio in ratios if abs(math.log2(ratio)) <= span]


def _chart(rows: Sequence[Mapping[str, object]], panels: Panels) -> alt.TopLevelMixin:
    span = max([_LEAST_RANGE, *(abs(row["ratio"]) for row in rows if row["clear"] and row["ratio"])])
    order = list(dict.fromkeys(row["series"] for row in rows))
    base = alt.Chart().encode(
        x=alt.X(
            "concurrency:O",
            title="concurrency (requests in flight)",
            axis=alt.Axis(orient="top", labelAngle=0),
        ),
        y=alt.Y("series:N", title=None, sort=order),
        description=alt.Description("label:N"),
        tooltip=alt.Tooltip("label:N", title=" "),
    )
    colour = alt.Color(
        "ratio:Q",
        title=METRICS["speedup"].header,
        scale=alt.Scale(
            domain=[-span, 0, span],
            range=[look.SLOW, look.NO_CHANGE, look.FAST],
            interpolate="rgb",
            clamp=True,
        ),
        legend=alt.Legend(
            labelExpr="format(pow(2, datum.value), '.2f') + 'x'", gradientLength=120, values=_ticks(span)
        ),
    )
    field = base.transform_filter("datum.kind == 'ratio'").mark_rect(stroke="white", strokeWidth=2)
    field = field.encode(
        color=colour, opacity=alt.when("datum.clear").then(alt.value(1)).otherwise(alt.value(0.32))
    )
    plain = base.transform_filter("datum.kind == 'baseline'").mark_rect(
        fill="#ECECEC", stroke="white", strokeWidth=2
    )
    untrusted = base.transform_filter("datum.kind == 'untrusted'").mark_rect(
        fill="white", stroke=look.MUTED, strokeDash=[4, 3], strokeWidth=1.2
    )
    dark = f"datum.clear && datum.kind == 'ratio' && abs(datum.ratio) > {span * 0.6:.4f}"
    ink = alt.when(dark).then(alt.value("white")).otherwise(alt.value(look.INK))
    figures = base.mark_text(fontSize=13, fontWeight="bold", dy=alt.expr("datum.below ? -6 : 0")).encode(
        text="shown:N", color=ink
    )
    words = base.mark_text(fontSize=10, dy=9).encode(text="below:N", color=ink)
    chart = alt.layer(field, plain, untrusted, figures, words, data=values(rows)).properties(
        width=alt.Step(_STEP_X), height=alt.Step(_STEP_Y)
    )
    if panels.count == 1:
        return chart
    headings = list(dict.fromkeys(row["panel"] for row in rows))
    widest = max(len({row["concurrency"] for row in rows if row["panel"] == name}) for name in headings)
    return (
        chart.facet(facet=alt.Facet("panel:N", sort=headings), columns=2 if widest <= 4 else 1, spacing=26)
        .resolve_scale(x="independent", y="independent")
        .resolve_axis(x="independent", y="independent")
    )
