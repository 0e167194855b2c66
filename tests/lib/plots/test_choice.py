"""Where there are too many series, each method is shown with its best k, by figures that may be ranked."""

from __future__ import annotations

from scripts.lib.plots.choice import fewer_series
from scripts.lib.plots.naming import named
from tests.evidence_factory import cell
from tests.record_factory import measured
from tests.results_factory import METHODS, sweep, tables

MANY = [("none", 0), *(("mtp", k) for k in range(1, 6)), *(("ngram", k) for k in range(1, 6))]


def test_few_series_are_all_shown() -> None:
    frame = named(tables(sweep(METHODS, repeats=1))[1])
    chosen = fewer_series(frame)
    assert (len(chosen.frame), chosen.note) == (len(frame), "")


def test_of_many_series_the_best_k_of_each_method_is_shown() -> None:
    frame = named(tables(sweep(MANY, (1, 4), repeats=1))[1])
    chosen = fewer_series(frame)
    medians = {name: rows["speedup"].median() for (name,), rows in frame.group_by("series") if name != "none"}
    best = {max((n for n in medians if n.startswith(method)), key=medians.get) for method in ("mtp", "ngram")}
    assert set(chosen.frame["series"]) == {"none", *best}
    assert "best k" in chosen.note


def test_an_invalid_figure_is_no_best_and_a_tie_goes_to_the_smaller_k() -> None:
    records = [measured(cell(), 100.0)]
    records += [measured(cell("mtp", k), 150.0) for k in range(1, 11)]
    records += [measured(cell("mtp", 11), 190.0, completed=1, failed=7)]
    chosen = fewer_series(named(tables(records)[1]))
    assert chosen.frame["series"].to_list() == ["none", "mtp k1"]
