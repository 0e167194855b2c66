"""The same work on several machines or engines: throughput without speculation and with the best method of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import polars as pl

from scripts.lib.cell import BASELINE
from scripts.lib.plots import look
from scripts.lib.plots.choice import RANKED
from scripts.lib.plots.figures import baseline_words, figure, interval, standing
from scripts.lib.plots.marks import side_by_side, values
from scripts.lib.plots.names import TITLES
from scripts.lib.plots.naming import named, repeats_words, value_words
from scripts.lib.plots.panels import split

TITLE = TITLES["hardware"]
_SHARED = ("model", "max_model_len", "scenario", "concurrency")


def draw(points: pl.DataFrame) -> alt.TopLevelMixin:
    """One panel for each model, max_model_len, scenario and concurrency that two machines, or two engines of one, have."""
    if points.is_empty():
        return look.note(TITLE, ["There is no point to compare."])
    frame = named(points)
    several = (
        frame.filter(_headline().is_not_null())
        .group_by(_SHARED)
        .agg(_servers=pl.struct("hardware", "engine").n_unique())
        .filter(pl.col("_servers") > 1)
    )
    frame = frame.join(several, on=_SHARED, how="semi", maintain_order="left")
    if points.filter(_headline().is_not_null()).is_empty():
        return look.note(TITLE, ["No point has a throughput."])
    if frame.is_empty():
        return look.note(
            TITLE,
            [
                f"Only {_alone(points)} gave figures for a given model, scenario and concurrency: nothing to compare."
            ],
        )
    panels = split(_chosen(frame), _SHARED)
    rows = [_row(row) for row in panels.frame.iter_rows(named=True)]
    lines = [
        panels.shared,
        f"Grey: no speculation; blue: the method with the highest valid speed-up there. {repeats_words(points)}",
        panels.note,
    ]
    return look.titled(side_by_side(rows, _bars, 2), TITLE, lines)


def _alone(points: pl.DataFrame) -> str:
    hardware, engines = (
        points[name].unique(maintain_order=True).to_list() for name in ("hardware", "engine")
    )
    if len(hardware) > 1 or len(engines) > 1:
        return "one machine and engine at a time"
    return f"one machine and engine ({hardware[0]}, {engines[0]})"


def _headline() -> pl.Expr:
    return pl.when(pl.col("headline") == "per_request_tps").then("per_request_tps").otherwise("aggregate_tps")


def _chosen(frame: pl.DataFrame) -> pl.DataFrame:
    """Of each machine and engine the baseline and the best valid method, by speed-up; at a tie the smaller k."""
    keys = ["hardware", "engine", *_SHARED]
    best = (
        frame.with_columns(_rank=RANKED)
        .filter(pl.col("method") != BASELINE, pl.col("_rank").is_not_null())
        .sort("_rank", "k", descending=[True, False])
        .group_by(keys, maintain_order=True)
        .first()
        .select(*keys, "series")
    )
    baseline = frame.filter(pl.col("method") == BASELINE, _headline().is_not_null()).select(*keys, "series")
    return frame.join(
        pl.concat([best, baseline]), on=[*keys, "series"], how="semi", maintain_order="left"
    ).sort(*_SHARED, "hardware", "engine", pl.col("method") != BASELINE)


def _row(row: Mapping[str, object]) -> dict[str, object]:
    name = str(row["headline"])
    text = figure(row, name)
    if row["method"] != BASELINE:
        text += f" ({', '.join(filter(None, (figure(row, 'speedup'), baseline_words(row))))})"
    spread = interval(row, name)
    server = f"{value_words('hardware', row['hardware'])} {row['engine']} {row['series']}"
    return {
        "panel": row["panel"],
        "series": server,
        "value": row[name],
        "low": row[f"{name}_low"],
        "high": row[f"{name}_high"],
        "end": max(row[name], row[f"{name}_high"] or 0),
        "text": text,
        "baseline": row["method"] == BASELINE,
        "label": f"{server}: {text}{f', {spread}' if spread else ''}, {standing(row)}",
    }


def _bars(rows: Sequence[Mapping[str, object]]) -> alt.LayerChart:
    order = list(dict.fromkeys(row["series"] for row in rows))
    base = alt.Chart().encode(
        y=alt.Y("series:N", title=None, sort=order),
        description=alt.Description("label:N"),
        tooltip=alt.Tooltip("label:N", title=" "),
    )
    bar = base.mark_bar(size=16).encode(
        x=alt.X("value:Q", title="throughput (tok/s)", axis=alt.Axis(tickCount=5, grid=False)),
        color=look.baseline_or("datum.baseline"),
    )
    spread = base.mark_rule(aria=False, color=look.INK, strokeWidth=1.5).encode(x="low:Q", x2="high:Q")
    text = base.mark_text(aria=False, align="left", dx=6, fontSize=11, color=look.INK).encode(
        x="end:Q", text="text:N"
    )
    return alt.layer(bar, spread, text, data=values(rows)).properties(width=340, height=alt.Step(26))
