"""What the time from the start of a server to its first completed request is spent on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import altair as alt
import polars as pl

from scripts.lib.metrics import METRICS, of_subject
from scripts.lib.plots import look
from scripts.lib.plots.marks import side_by_side, values
from scripts.lib.plots.names import TITLES
from scripts.lib.plots.panels import split
from scripts.lib.plots.servers import servers
from scripts.lib.tables.compare import SERVER_BLOCK

TITLE = TITLES["startup"]
LOAD, COMPILE, CAPTURE, INIT, REST, WHOLE = (
    "load model",
    "compile",
    "capture graphs",
    "rest of engine init",
    "everything else",
    "not divided",
)
_PHASES = {
    LOAD: "#0072B2",
    COMPILE: "#D55E00",
    CAPTURE: "#E69F00",
    INIT: "#009E73",
    REST: "#BBBBBB",
    WHOLE: "#767676",
}


def phases(row: Mapping[str, float | None]) -> list[tuple[str, float]]:
    """Disjoint phases that add up to startup_ready_s, in seconds, by the metrics of subject startup.

    Reading weights is part of loading the model, compiling part of initialising the engine. Where what the log states is
    more than the whole (phases that overlap), nothing can be told apart: one phase WHOLE.
    """
    ready = row["startup_ready_s"]
    if ready is None:
        return []
    load = _known(row["model_load_s"], _total(row["weights_load_s"], row["drafter_load_s"]))
    compiled, captured = row["compile_s"] or 0.0, row["capture_s"] or 0.0
    init = max(0.0, (row["init_s"] or 0.0) - compiled - captured)
    parts = [(LOAD, load), (COMPILE, compiled), (CAPTURE, captured), (INIT, init)]
    rest = ready - sum(seconds for _, seconds in parts)
    if rest < 0 or not any(seconds for _, seconds in parts):
        return [(WHOLE, ready)]
    return [(name, seconds) for name, seconds in [*parts, (REST, rest)] if seconds > 0]


def _known(*candidates: float | None) -> float:
    return next((value for value in candidates if value is not None), 0.0)


def _total(*parts: float | None) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def draw(points: pl.DataFrame) -> alt.TopLevelMixin:
    """One panel for each hardware, engine, model and max_model_len; one bar for each server."""
    frame = servers(points, of_subject("startup"))
    panels = split(frame, SERVER_BLOCK)
    rows = [part for row in panels.frame.iter_rows(named=True) for part in _parts(row)]
    if not rows:
        return look.note(TITLE, ["No server became ready."])
    names = [name for name in _PHASES if any(row["phase"] == name for row in rows)]
    lines = [
        panels.shared,
        f"{METRICS['startup_ready_s'].label}: {METRICS['startup_ready_s'].formula}; phases as the start-up log states them.",
        panels.note,
    ]
    return look.titled(side_by_side(rows, lambda part: _bars(part, names), 2), TITLE, lines)


def _parts(row: Mapping[str, object]) -> Iterable[dict[str, object]]:
    begin, found = 0.0, phases(row)
    for name, seconds in found:
        yield {
            "panel": row["panel"],
            "series": row["series"],
            "phase": name,
            "begin": begin,
            "end": begin + seconds,
            "total": f"{row['startup_ready_s']:.1f} s" if name == found[-1][0] else "",
            "label": f"{row['series']}: {name} {seconds:.1f} s of {row['startup_ready_s']:.1f} s",
        }
        begin += seconds


def _bars(rows: Sequence[Mapping[str, object]], names: Sequence[str]) -> alt.LayerChart:
    order = list(dict.fromkeys(row["series"] for row in rows))
    base = alt.Chart().encode(y=alt.Y("series:N", title=None, sort=order))
    bar = base.mark_bar(size=16, stroke="white", strokeWidth=1).encode(
        x=alt.X("begin:Q", title="seconds from the start", axis=alt.Axis(grid=False, tickCount=5)),
        x2="end:Q",
        color=alt.Color(
            "phase:N",
            title="phase",
            sort=list(names),
            scale=alt.Scale(domain=list(names), range=[_PHASES[name] for name in names]),
            legend=alt.Legend(orient="bottom", direction="horizontal", columns=3),
        ),
        description=alt.Description("label:N"),
        tooltip=alt.Tooltip("label:N", title=" "),
    )
    total = base.mark_text(aria=False, align="left", dx=5, fontSize=11, color=look.INK).encode(
        x="end:Q", text="total:N"
    )
    return alt.layer(bar, total, data=values(rows)).properties(width=340, height=alt.Step(26))
