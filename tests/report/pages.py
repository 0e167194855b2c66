"""Whole pages from invented results, made as rules draw_plots and write_report make them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from scripts.lib.plots.catalogue import DRAW
from scripts.lib.plots.files import svg_of
from scripts.lib.recommend.build import recommend
from scripts.lib.recommend.wishes import Wishes
from scripts.lib.report.page import Picture, Results, render
from scripts.lib.report.pictures import caption, embedded
from tests.results_factory import CASES, tables

CAPTIONS = Path(__file__).parents[2] / "workflow" / "report"
WISHES = Wishes({}, (), 1, 2, None, 0.02, None)


@cache
def page(case: str) -> str:
    """The report of one of CASES."""
    cells, points = tables(CASES[case]())
    found = recommend(points, WISHES, lambda server: 1)
    results = Results(cells, points, json.loads(json.dumps(found.as_json)))
    pictures = [
        Picture(name, embedded(svg_of(draw(points)), name), caption((CAPTIONS / f"{name}.rst").read_text()))
        for name, draw in DRAW.items()
    ]
    return render(results, pictures, lambda server: None)
