"""One look for all plots: colours that colour-blind readers tell apart, shapes for states, sizes and titles."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import altair as alt

from scripts.lib.cell import BASELINE
from scripts.lib.plots.naming import CLEAR, INVALID, NO_VERDICT, OPEN, SINGLE, STATES, UNFAIR

# Okabe and Ito, Color Universal Design (2008), without black and yellow, which vanish on a dark or a light page.
_METHOD_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9")
BASELINE_COLOUR = "#767676"
FAST, NO_CHANGE, SLOW = "#0072B2", "#F4F4F2", "#D55E00"
MUTED = "#767676"
INK = "#222222"
_DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])

_CROSS = "M-0.7,-0.7L0.7,0.7M-0.7,0.7L0.7,-0.7"
_SHAPES = {
    CLEAR: "circle",
    OPEN: "diamond",
    SINGLE: "square",
    NO_VERDICT: "triangle-down",
    UNFAIR: "triangle-up",
    INVALID: _CROSS,
}
_SHAPE_WORDS = {
    OPEN: "diamond",
    SINGLE: "square",
    NO_VERDICT: "triangle down",
    UNFAIR: "triangle up",
    INVALID: "cross",
}

FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif"
_WRAP = 100


@dataclass(frozen=True)
class Palette:
    """A colour for each method and a dash for each of its k, the same in every plot of a run."""

    colours: dict[str, str]
    dashes: dict[str, list[int]]

    def colour(self, names: Sequence[str]) -> alt.Scale:
        return alt.Scale(domain=list(names), range=[self.colours[name] for name in names])

    def dash(self, names: Sequence[str]) -> alt.Scale:
        return alt.Scale(domain=list(names), range=[self.dashes[name] for name in names])


def palette(series: Iterable[tuple[str, str]]) -> Palette:
    """From (method, series) pairs in reading order."""
    colours: dict[str, str] = {}
    dashes: dict[str, list[int]] = {}
    by_method: dict[str, list[str]] = {}
    for method, name in series:
        by_method.setdefault(method, []).append(name)
    others = [method for method in by_method if method != BASELINE]
    for method, names in by_method.items():
        for rank, name in enumerate(dict.fromkeys(names)):
            colours[name] = (
                BASELINE_COLOUR
                if method == BASELINE
                else _METHOD_COLOURS[others.index(method) % len(_METHOD_COLOURS)]
            )
            dashes[name] = _DASHES[rank % len(_DASHES)]
    return Palette(colours, dashes)


def baseline_or(condition: str) -> dict:
    """Grey where `condition` holds, which is for the baseline, and blue elsewhere."""
    return alt.when(condition).then(alt.value(BASELINE_COLOUR)).otherwise(alt.value(FAST))


def state_shape(states: Iterable[str]) -> alt.Shape:
    """Shapes for the states that occur; state_words explains them."""
    found = set(states)
    present = [name for name in STATES if name in found]
    scale = alt.Scale(domain=present, range=[_SHAPES[name] for name in present])
    return alt.Shape("state:N", scale=scale, legend=None)


def state_words(states: Iterable[str]) -> str:
    """What the hollow points of a plot stand for; empty when every figure is clear."""
    found = set(states)
    words = [f"{_SHAPE_WORDS[name]} = {name}" for name in STATES if name in found and name != CLEAR]
    return f"Hollow points: {', '.join(words)}." if words else ""


def line_legend() -> alt.Legend:
    """A piece of line, so that colour and dash show together."""
    return alt.Legend(symbolType="stroke", symbolSize=420, symbolStrokeWidth=2.2)


def titled(chart: alt.TopLevelMixin, title: str, lines: Iterable[str]) -> alt.TopLevelMixin:
    """`chart` under a title that says what, and a subtitle that says on what; empty lines are dropped."""
    wrapped = [part for line in lines if line for part in textwrap.wrap(line, _WRAP)]
    header = alt.TitleParams(
        text=title,
        subtitle=wrapped,
        anchor="start",
        frame="bounds",
        offset=14,
        fontSize=17,
        subtitleFontSize=12,
        subtitleColor="#555555",
        subtitlePadding=6,
        subtitleLineHeight=16,
    )
    return (
        chart.properties(title=header, background="white", padding=14)
        .configure(font=FONT)
        .configure_view(stroke=None)
        .configure_axis(
            labelFontSize=11, titleFontSize=12, titleFontWeight="normal", gridColor="#e6e6e6", labelLimit=260
        )
        .configure_legend(labelFontSize=11, titleFontSize=11, labelLimit=260, symbolSize=70)
        .configure_header(labelFontSize=12, labelFontWeight="bold", labelLimit=520, title=None)
    )


def note(title: str, lines: Sequence[str]) -> alt.TopLevelMixin:
    """What stands in place of a plot for which there is nothing to draw."""
    text = [part for line in lines if line for part in textwrap.wrap(line, _WRAP)]
    shown = [{"line": number, "text": line} for number, line in enumerate(text)]
    chart = (
        alt.Chart(alt.Data(values=shown))
        .mark_text(align="left", fontSize=13, color=INK)
        .encode(
            x=alt.value(0),
            y=alt.Y("line:O", axis=None),
            text="text:N",
            description=alt.Description("text:N"),
        )
        .properties(width=640, height=alt.Step(20))
    )
    return titled(chart, title, [])
