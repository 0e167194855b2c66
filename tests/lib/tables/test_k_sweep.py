"""The best k by measured throughput, and the ones that cannot be told from it."""

from __future__ import annotations

import pytest

from scripts.lib.tables.k_sweep import k_sweep_table, k_sweep_text
from tests.evidence_factory import cell
from tests.lib.tables.reading import body, header
from tests.lib.tables.test_cells import RECORDS
from tests.record_factory import measured, points_of


def repeats(method: str, k: int, concurrency: int, tps: tuple, **values: object) -> list[dict]:
    return [
        measured(cell(method, k, concurrency, repeat=number), value, **values)
        for number, value in enumerate(tps, start=1)
    ]


F06 = [
    *repeats("none", 0, 1, (40.0, 40.2, 39.9)),
    *repeats("none", 0, 8, (150, 151, 149)),
    *repeats("mtp", 4, 1, (56.1, 55.0, 56.9), acceptance_rate=0.495),
    *repeats("mtp", 2, 1, (55.4, 56.3, 54.8), acceptance_rate=0.66),
    *repeats("mtp", 4, 8, (199, 204, 200), acceptance_rate=0.495),
    *repeats("mtp", 2, 8, (288, 281, 295), acceptance_rate=0.66),
]


def test_f06_a_tie_names_both_and_a_winner_itself() -> None:
    lines = k_sweep_text(k_sweep_table(points_of(F06)))
    assert header(lines) == ["method", "c", "k2 (x)", "k4 (x)", "best k"]
    assert [row[-1] for row in body(lines)] == ["2 or 4", "2"]
    assert [row[:2] for row in body(lines)] == [["mtp", "1"], ["mtp", "8"]]


def test_ranked_by_throughput_not_by_acceptance() -> None:
    records = [
        *repeats("mtp", 1, 1, (10.0, 10.1, 10.0), acceptance_rate=0.9),
        *repeats("mtp", 5, 1, (15.0, 15.1, 15.0), acceptance_rate=0.3),
    ]
    table = k_sweep_table(points_of(records))
    assert dict(table.select("k", "best").rows()) == {1: False, 5: True}


def test_what_does_not_speculate_has_no_k_to_choose() -> None:
    records = [*repeats("none", 0, 1, (10.0,)), *repeats("none-tuned", 0, 1, (11.0,))]
    lines = k_sweep_text(k_sweep_table(points_of(records)))
    assert lines[-1] == "No cell speculates."
    assert "Nothing was measured" not in " ".join(lines), "`none` was"


def test_an_invalid_k_is_shown_but_never_best() -> None:
    records = [*repeats("mtp", 1, 1, (10.0, 10.1)), *repeats("mtp", 3, 1, (99.0, 99.1), preemptions=4)]
    table = k_sweep_table(points_of(records))
    assert dict(table.select("k", "best").rows()) == {1: True, 3: False}
    lines = k_sweep_text(table)
    assert body(lines) == [["mtp", "1", "-", "- !!", "1"]]


def test_single_runs_say_that_best_is_only_what_was_seen() -> None:
    lines = k_sweep_text(
        k_sweep_table(points_of([*repeats("mtp", 1, 1, (10,)), *repeats("mtp", 3, 1, (20,))]))
    )
    assert body(lines)[0][-1] == "3"
    assert "nothing is known of the noise" in " ".join(lines)


def test_synthetic_ks_are_ranked_among_themselves() -> None:
    records = [*repeats("mtp", 1, 1, (10.0, 10.1)), *repeats("mtp", 3, 1, (99.0, 99.1), synthetic=True)]
    table = k_sweep_table(points_of(records))
    assert table["best"].to_list() == [True, True]
    headings = [line for line in k_sweep_text(table) if line.startswith("## ")]
    assert ["synthetic acceptance" in heading for heading in headings] == [False, True]


@pytest.mark.parametrize("records", RECORDS.values(), ids=list(RECORDS))
def test_types_do_not_depend_on_the_outcome(records: list[dict]) -> None:
    table = k_sweep_table(points_of(records))
    assert table.schema == k_sweep_table(points_of(F06)).schema
    k_sweep_text(table)


def test_a_ratio_to_a_baseline_that_is_not_to_be_believed() -> None:
    records = [measured(cell(), 20.0, wall_s=0.2), measured(cell("mtp", 1), 30.0)]
    lines = k_sweep_text(k_sweep_table(points_of(records)))
    assert body(lines) == [["mtp", "1", "1.50x (none !!)", "1"]]
    assert "in brackets that of `none`" in " ".join(lines)
