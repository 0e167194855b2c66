"""The page: everything put together and written as html."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import jinja2
import polars as pl

from scripts.lib.cell import Server
from scripts.lib.launch import Launch
from scripts.lib.plots.naming import SETTING, counted, setting_words
from scripts.lib.report import doubts
from scripts.lib.report.causes import COLUMNS, above_limit, causes
from scripts.lib.report.main_table import Block, blocks
from scripts.lib.report.method import explained, facts
from scripts.lib.report.recommended import choices, fleets
from scripts.lib.report.servers import commands
from scripts.lib.tables.outputs import warnings

TITLE = "Which speculative decoding to deploy?"
OPEN_ROWS, OPEN_CHOICES = 40, 24
"""So many rows of the main table, and of the recommendation, are shown at once; more are one click away."""

_CONTENTS = (
    ("figures", "Main table"),
    ("plots", "Plots"),
    ("recommendation", "Recommendation"),
    ("causes", "Why it is that fast"),
    ("method", "How it was measured"),
    ("doubts", "What is not trusted"),
    ("commands", "Start each server"),
)
_TABLE_CAPTION = """Tokens per second: of one request at concurrency 1 (mean over requests), of all requests together above. In bold the
ratio to none under the same conditions; below it the 95% interval over repeats, and the verdict."""


@dataclass(frozen=True)
class Picture:
    """A plot of the page: both texts are html."""

    name: str
    svg: str
    caption: str


@dataclass(frozen=True)
class Results:
    """Everything the page tells of: the tables of that name, and results/recommendation.json."""

    cells: pl.DataFrame
    points: pl.DataFrame
    analysis: pl.DataFrame
    outputs: pl.DataFrame
    recommendation: Mapping[str, Any]


def render(
    results: Results, pictures: Iterable[Picture], launch_of: Callable[[Server], Launch | None]
) -> str:
    """The whole page. Everything that is not a picture is escaped."""
    cells, points = results.cells, results.points
    groups = [
        ("Without a result", doubts.failures(cells)),
        ("Measured, but not believed", doubts.checks(cells)),
    ]
    table = list(blocks(points))
    chosen = choices(results.recommendation)
    open_questions = [
        *doubts.unresolved(points),
        *above_limit(results.analysis),
        *(f"Other answers than none: {words.replace('`', '')}" for words in warnings(results.outputs)),
    ]
    return _template().render(
        title=TITLE,
        style=_part("page.css"),
        script=_part("page.js"),
        shared=_shared(points),
        answer=[words.replace("`", "") for words in results.recommendation["answer"]],
        counts=_counts(cells, points),
        contents=_CONTENTS,
        blocks=list(zip(table, _open(table), strict=True)),
        table_caption=_TABLE_CAPTION,
        plots=list(pictures),
        causes=list(causes(results.analysis)),
        cause_columns=COLUMNS,
        choices=chosen,
        open_choices=OPEN_CHOICES,
        remarks=list(dict.fromkeys(words for choice in chosen for words in choice.remarks)),
        fleets=fleets(results.recommendation),
        facts=facts(cells, points),
        metrics=explained(),
        open_questions=open_questions,
        doubt_groups=groups,
        nothing_doubtful="" if open_questions or any(found for _, found in groups) else _all_good(points),
        servers=list(commands(cells, launch_of)),
    )


def _open(table: Sequence[Block]) -> list[bool]:
    """Which blocks are open at first: the first, and those after it while few rows are shown."""
    ends = accumulate(len(block.rows) for block in table)
    return [place == 0 or end <= OPEN_ROWS for place, end in enumerate(ends)]


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_part("page.html.j2"))


def _part(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def _shared(points: pl.DataFrame) -> str:
    """What all points have in common."""
    if points.is_empty():
        return ""
    same = [axis for axis in SETTING if points[axis].n_unique() == 1]
    return setting_words(points.row(0, named=True), same)


def _counts(cells: pl.DataFrame, points: pl.DataFrame) -> str:
    if points.is_empty():
        return ""
    found = dict(points["validity"].value_counts().rows())
    words = [f"{found[name]:,} {name.lower()}" for name in ("VALID", "UNFAIR", "INVALID") if found.get(name)]
    return f"{counted(len(points), 'point')} from {counted(len(cells), 'cell')}: {', '.join(words)}."


def _all_good(points: pl.DataFrame) -> str:
    return (
        "Nothing: every point passed the checks and has a verdict." if len(points) else "There is no point."
    )
