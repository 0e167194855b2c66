"""Heat map: speed-up of every method and k at every concurrency."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import altair as alt
import polars as pl

from scripts.lib.cell import BASELINE
from scripts.lib.metrics import METRICS
from scripts.lib.plots import look
from scripts.lib.plots.figures import baseline_words, figure, interval, label
from scripts.lib.plots.marks import side_by_side, values
from scripts.lib.plots.names import TITLES
from scripts.lib.plots.naming import CLEAR, INVALID, SETTING, UNFAIR, named, reason_names, repeats_words
from scripts.lib.plots.panels import split

TITLE = TITLES["speedup"]
_WORDS = "Full colour: a clear difference; pale: unresolved or without a verdict; dashed: not ranked."
_GREY = "#ECECEC"
_LEAST_RANGE = 0.25
_STEP_X, _STEP_Y = 104, 40


def draw(points: pl.DataFrame) -> alt.TopLevelMixin:
    """One panel for each setting: methods down, concurrency across, the ratio to `none` in each field.

    Only resolved differences are in full colour; every field says in words what its figure may be used for."""
    if points["speedup"].drop_nulls().is_empty() and points["per_request_tps"].drop_nulls().is_empty():
        return look.note(TITLE, ["No point has a throughput, so there is nothing to compare."])
    panels = split(named(points), SETTING)
    rows = [_field(row) for row in panels.frame.iter_rows(named=True)]
    span = _span(rows)
    colour = _colour(span, any(row["ratio"] is not None for row in rows))
    columns = 2 if len({row["concurrency"] for row in rows}) <= 5 else 1
    lines = [
        panels.shared,
        f"Ratio of throughput, per request at concurrency 1, total above. {repeats_words(points)} {_WORDS}",
        panels.note,
    ]
    return look.titled(side_by_side(rows, lambda part: _fields(part, span, colour), columns), TITLE, lines)


def _field(row: Mapping[str, object]) -> dict[str, object]:
    baseline, ratio = row["method"] == BASELINE, row["speedup"]
    trusted = row["state"] not in (INVALID, UNFAIR) and not baseline_words(row)
    kind = "baseline" if baseline and trusted else "ratio" if trusted and ratio else "plain"
    metric = "speedup" if ratio and not baseline else str(row["headline"])
    return {
        "panel": row["panel"],
        "series": row["series"],
        "concurrency": row["concurrency"],
        "shown": figure(row, metric) if row[metric] is not None else "/".join(row["statuses"]),
        "below": "" if row[metric] is None else _below(row, kind),
        "ratio": math.log2(ratio) if kind == "ratio" else None,
        "kind": kind,
        "clear": row["state"] == CLEAR,
        "label": label(row, metric),
    }


def _below(row: Mapping[str, object], kind: str) -> str:
    """The second line of a field: an interval, or why there is no verdict."""
    if row["validity"] != "VALID":
        return _first(reason_names(row["validity_reasons"]))
    if kind == "plain":
        return baseline_words(row) or "no baseline"
    if row["state"] != CLEAR:
        return str(row["state"])
    return interval(row, "speedup") if kind == "ratio" else ""


def _first(names: Sequence[str]) -> str:
    """The first of several, and how many more there are: the field is narrow."""
    more = f" +{len(names) - 1}" if len(names) > 1 else ""
    return f"{names[0]}{more}" if names else ""


def _span(rows: Sequence[Mapping[str, object]]) -> float:
    """The largest clear ratio in either direction, as a logarithm; of all ratios where none is clear."""
    known = [row for row in rows if row["ratio"] is not None]
    shown = [row for row in known if row["clear"]] or known
    return max([_LEAST_RANGE, *(abs(row["ratio"]) for row in shown)])


def _ticks(span: float) -> list[float]:
    """Round ratios within the colours' range, as the logarithms that the colours stand for."""
    ratios = (0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4) if span > 0.5 else (0.75, 0.9, 1, 1.1, 1.25)
    return [math.log2(ratio) for ratio in ratios if abs(math.log2(ratio)) <= span]


def _fields(rows: Sequence[Mapping[str, object]], span: float, colour: alt.Color) -> alt.LayerChart:
    order = list(dict.fromkeys(row["series"] for row in rows))
    axis = alt.Axis(orient="top", labelAngle=0)
    base = alt.Chart().encode(
        x=alt.X("concurrency:O", title="concurrency (requests in flight)", axis=axis),
        y=alt.Y("series:N", title=None, sort=order),
    )
    ground = base.mark_rect(aria=False, stroke="white", strokeWidth=2).encode(
        color=alt.when("datum.kind == 'baseline'").then(alt.value(_GREY)).otherwise(alt.value("white"))
    )
    field = base.mark_rect(aria=False, stroke="white", strokeWidth=2).encode(
        color=colour,
        opacity=alt.when("datum.clear").then(alt.value(1)).otherwise(alt.value(0.32)),
    )
    # Above its neighbours' edges; also what answers to the pointer and to screen readers.
    frame = base.mark_rect(fill="transparent", strokeDash=[4, 3], strokeWidth=1.2).encode(
        stroke=alt.when("datum.kind == 'plain'")
        .then(alt.value(look.MUTED))
        .otherwise(alt.value("transparent")),
        description=alt.Description("label:N"),
        tooltip=alt.Tooltip("label:N", title=" "),
    )
    return alt.layer(ground, field, *_texts(base, span), frame, data=values(rows)).properties(
        width=alt.Step(_STEP_X), height=alt.Step(_STEP_Y)
    )


def _colour(span: float, with_legend: bool) -> alt.Color:
    legend = alt.Legend(
        labelExpr="format(pow(2, datum.value), '.2f') + 'x'", gradientLength=120, values=_ticks(span)
    )
    scale = alt.Scale(
        domain=[-span, 0, span],
        range=[look.SLOW, look.NO_CHANGE, look.FAST],
        interpolate="rgb",
        clamp=True,
    )
    return alt.Color(
        "ratio:Q", title=METRICS["speedup"].header, scale=scale, legend=legend if with_legend else None
    )


def _texts(base: alt.Chart, span: float) -> Iterator[alt.Chart]:
    dark = f"datum.clear && datum.kind == 'ratio' && abs(datum.ratio) > {span * 0.6:.4f}"
    ink = alt.when(dark).then(alt.value("white")).otherwise(alt.value(look.INK))
    above = alt.expr("datum.below ? -6 : 0")
    yield base.mark_text(aria=False, fontSize=13, fontWeight="bold", dy=above).encode(
        text="shown:N", color=ink
    )
    yield base.mark_text(aria=False, fontSize=10, dy=9).encode(text="below:N", color=ink)
