"""Whole pages from invented results, made as rules draw_plots and write_report make them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import polars as pl

from scripts.lib.analysis.roofline import Facts
from scripts.lib.analysis.table import analysis_table
from scripts.lib.plots.catalogue import DRAW
from scripts.lib.plots.files import svg_of
from scripts.lib.recommend.build import recommend
from scripts.lib.recommend.wishes import Wishes
from scripts.lib.report.page import Picture, Results, render
from scripts.lib.report.pictures import caption, embedded
from scripts.lib.tables.outputs import OUTPUTS_SCHEMA
from tests.results_factory import CASES, tables

CAPTIONS = Path(__file__).parents[2] / "workflow" / "report"
WISHES = Wishes({}, (), 1, 2, None, 0.02, None)
NOTHING = Facts()


def results(records: Iterable[dict], facts: Facts = NOTHING, outputs: Iterable[dict] = ()) -> Results:
    """What the page is made of. `outputs`: rows of the table of answers, as far as they matter."""
    cells, points = tables(records)
    found = recommend(points, WISHES, lambda server: 1)
    return Results(
        cells=cells,
        points=points,
        analysis=analysis_table(points, lambda server: facts),
        outputs=pl.DataFrame(
            [[row.get(name) for name in OUTPUTS_SCHEMA] for row in outputs], OUTPUTS_SCHEMA, orient="row"
        ),
        recommendation=json.loads(json.dumps(found.as_json)),
    )


@cache
def page(case: str) -> str:
    """The report of one of CASES."""
    whole = results(CASES[case]())
    pictures = [
        Picture(
            name, embedded(svg_of(draw(whole.points)), name), caption((CAPTIONS / f"{name}.rst").read_text())
        )
        for name, draw in DRAW.items()
    ]
    return render(whole, pictures, lambda server: None)
