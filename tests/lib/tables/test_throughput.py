"""The main table, as a stranger reads it."""

from __future__ import annotations

import polars as pl
import pytest

from scripts.lib.tables import markdown
from scripts.lib.tables.throughput import throughput_table, throughput_text
from tests.evidence_factory import cell
from tests.record_factory import damaged, failed, infeasible, measured, mislabelled, points_of


def text_of(records: list[dict]) -> list[str]:
    return throughput_text(throughput_table(points_of(records)))


def rows_of(records: list[dict]) -> list[list[str]]:
    lines = [line for line in text_of(records) if line.startswith("|")]
    return [[part.strip() for part in line.strip("|").split("|")] for line in lines]


STUDY_A = {
    "none": (81.27, 241.67),
    "mtp": (111.36, 302.27),
    "dflash": (95.48, 268.61),
    "dspark": (124.24, 354.56),
}


def test_study_a_comes_out_as_published() -> None:
    records = []
    for method, (one, eight) in STUDY_A.items():
        k = 0 if method == "none" else 3
        records += [
            measured(cell(method, k, 1), one, per_request_tps=one),
            measured(cell(method, k, 8), eight, per_request_tps=eight / 8),
        ]
    assert rows_of(records) == [
        ["method", "k", "c1 per request (tok/s)", "c8 total (tok/s)"],
        ["--------", "--:", "-----------------------:", "-----------------:"],
        ["none", "-", "81.3", "241.7"],
        ["dflash", "3", "95.5 (1.17x)", "268.6 (1.11x)"],
        ["dspark", "3", "124.2 (1.53x)", "354.6 (1.47x)"],
        ["mtp", "3", "111.4 (1.37x)", "302.3 (1.25x)"],
    ]


def test_the_table_keeps_full_figures() -> None:
    table = throughput_table(points_of([measured(cell(), 20.123456789)]))
    assert table["per_request_tps"].to_list() == [20.123456789]
    assert table["headline"].to_list() == ["per_request_tps"]


def test_absent_baseline_failure_and_not_asked_look_different() -> None:
    records = [
        measured(cell("mtp", 1, 1), 20.0),
        failed(cell("mtp", 1, 4)),
        infeasible(cell("mtp", 3, 1)),
        damaged(cell("ngram", 1, 1)),
        measured(cell("ngram", 1, 4), 30.0),
    ]
    assert rows_of(records)[2:] == [
        ["mtp", "1", "20.0 (-)", "failed"],
        ["mtp", "3", "infeasible", ""],
        ["ngram", "1", "damaged", "30.0 (-)"],
    ]


def test_figures_with_failed_requests_are_marked() -> None:
    records = [measured(cell(), 20.0), measured(cell("mtp", 1), 30.0, completed=7, failed=1)]
    assert rows_of(records)[3][2] == "30.0 (1.50x) !!"
    assert any("!! INVALID, not to be believed: see validity.md" in line for line in text_of(records))
    assert not any("validity.md" in line for line in text_of(records[:1]))


def test_a_ratio_carries_the_mark_of_its_baseline() -> None:
    records = [measured(cell(), 20.0, wall_s=0.2), measured(cell("mtp", 1), 30.0)]
    assert [row[2] for row in rows_of(records)[2:]] == ["20.0 !!", "30.0 (1.50x !!)"]
    note = "Marks: !! INVALID, not to be believed; in brackets that of `none`: see validity.md."
    assert note in " ".join(text_of(records))
    records[1]["completed"] -= 1
    assert rows_of(records)[3][2] == "30.0 (1.50x) !!", "its own mark says as much"
    plain = [measured(cell(), 20.0), measured(cell("mtp", 1), 30.0, completed=7)]
    assert "in brackets that of" not in " ".join(text_of(plain))


def test_repeats_give_medians_and_ratios_paired_by_repeat() -> None:
    tps = {"none": (10.0, 20.0, 40.0), "mtp": (20.0, 20.0, 60.0)}
    records = [
        measured(cell(method, 0 if method == "none" else 1, repeat=r), value)
        for method, values in tps.items()
        for r, value in enumerate(values, start=1)
    ]
    # Ratios by repeat: 2.0, 1.0, 1.5, whose geometric mean is 1.44.
    assert [row[2] for row in rows_of(records)[2:]] == ["20.0 (noise 150.0%)", "20.0 (1.44x ±138%) ?"]
    assert any("? unresolved" in line for line in text_of(records))
    assert any("Median of 3 repeats" in line for line in text_of(records))


def test_a_failed_repeat_is_marked_not_averaged_as_zero() -> None:
    records = [measured(cell(repeat=1), 20.0), failed(cell(repeat=2))]
    assert rows_of(records)[2][2] == "20.0 *"
    assert any("* some repeats are not valid and left out" in line for line in text_of(records))


def test_a_mislabelled_cell_shows_its_status_and_no_figure() -> None:
    records = [
        measured(cell(), 10.0),
        mislabelled(cell("mtp", 3), 99.0),
        measured(cell("mtp", 1, repeat=1), 15.0),
        mislabelled(cell("mtp", 1, repeat=2), 99.0),
    ]
    assert [row[1:] for row in rows_of(records)[2:]] == [
        ["-", "10.0"],
        ["1", "15.0 (1.50x) *"],
        ["3", "mislabelled"],
    ]
    assert "99.0" not in " ".join(text_of(records))


def test_a_single_run_says_so() -> None:
    assert "Single run of each cell" in " ".join(text_of([measured(cell(), 20.0)]))


@pytest.mark.parametrize(
    "other",
    [{"hardware": "h100"}, {"engine": "sglang"}, {"model": "big"}, {"max_model_len": 99}, {"scenario": "x"}],
)
def test_what_must_not_be_compared_stands_under_its_own_heading(other: dict) -> None:
    lines = text_of([measured(cell(), 20.0), measured(cell(**other), 30.0)])
    headings = [line for line in lines if line.startswith("## ")]
    assert len(set(headings)) == 2
    assert any(str(next(iter(other.values()))) in heading for heading in headings)


def test_many_concurrencies_fit_the_terminal() -> None:
    records = [measured(cell("draft_model", 15, c), 123456.0) for c in (1, 2, 4, 8, 16, 32, 64, 128)]
    assert max(map(len, text_of(records))) <= markdown.WIDTH


def test_nothing_measured_and_nothing_at_all() -> None:
    assert "Nothing was measured." in " ".join(text_of([]))
    lines = text_of([failed(cell()), failed(cell("mtp", 1))])
    assert "Nothing was measured." in " ".join(lines)
    assert sum("failed" in line for line in lines) == 2


def test_csv_types_do_not_depend_on_the_outcome() -> None:
    full = throughput_table(points_of([measured(cell(), 20.0)])).schema
    assert throughput_table(points_of([])).schema == full
    assert throughput_table(points_of([failed(cell())])).schema == full
    assert full["speedup"] == pl.Float64
