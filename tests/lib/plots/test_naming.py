"""Names and states of rows: what a reader is told about each figure."""

from __future__ import annotations

import pytest

from scripts.lib.plots.naming import named, reason_names, repeats_words, series, setting_words, state
from tests.evidence_factory import cell
from tests.record_factory import failed
from tests.results_factory import measured, sweep, tables


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"validity": "VALID", "verdict": "faster", "repeats_valid": 3}, "clear"),
        ({"validity": "VALID", "verdict": "baseline", "repeats_valid": 3}, "clear"),
        ({"validity": "VALID", "verdict": "baseline", "repeats_valid": 1}, "single run"),
        ({"validity": "VALID", "verdict": "single run", "repeats_valid": 1}, "single run"),
        ({"validity": "VALID", "verdict": "unresolved", "repeats_valid": 3}, "unresolved"),
        ({"validity": "VALID", "verdict": "no verdict", "repeats_valid": 3}, "no verdict"),
        ({"validity": "UNFAIR", "verdict": "no verdict", "repeats_valid": 0}, "unfair"),
        ({"validity": "INVALID", "verdict": "no verdict", "repeats_valid": 0}, "invalid"),
    ],
)
def test_state_says_what_a_figure_may_be_used_for(row: dict, expected: str) -> None:
    assert state(row) == expected


def test_synthetic_acceptance_is_part_of_the_name() -> None:
    assert series("mtp", 3) == "mtp k3"
    assert series("mtp", 3, synthetic=True) == "mtp k3 (synthetic)"
    assert series("none", 0) == "none"


def test_rows_stand_in_reading_order() -> None:
    _, points = tables(sweep(concurrencies=(4, 1), repeats=1))
    rows = named(points).select("series", "concurrency").rows()
    assert rows[:4] == [("none", 1), ("none", 4), ("mtp k1", 1), ("mtp k1", 4)]


def test_a_setting_in_words() -> None:
    values = {"hardware": "cpu", "max_model_len": 1024, "scenario": "code", "concurrency": 4}
    assert setting_words(values, list(values)) == "cpu · max_model_len 1024 · scenario code · concurrency 4"


def test_reasons_are_named_once() -> None:
    assert reason_names(["incomplete: 3 of 8", "incomplete: 2 of 8", "too_fast: 9x"]) == [
        "incomplete",
        "too_fast",
    ]


def test_repeats_in_words() -> None:
    assert repeats_words(tables(sweep(repeats=3))[1]) == "Median of 3 repeats."
    assert repeats_words(tables(sweep(repeats=1))[1]) == "Single runs: no intervals, no verdicts."
    mixed = [*sweep(repeats=2), measured(cell("mtp", 3, 64))]
    assert repeats_words(tables(mixed)[1]) == "Median of 1 to 2 repeats."
    assert repeats_words(tables([failed(cell())])[1]) == "No valid measurement."
