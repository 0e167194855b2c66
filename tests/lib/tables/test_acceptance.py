"""Acceptance by method, k, concurrency and position."""

from __future__ import annotations

import pytest

from scripts.lib.tables import markdown
from scripts.lib.tables.acceptance import acceptance_table, acceptance_text
from tests.evidence_factory import cell
from tests.lib.tables.reading import body
from tests.record_factory import failed, measured, mislabelled, points_of


def speculating(k: int, length: float, positions: list[float], repeat: int = 1) -> dict:
    rate = (length - 1) / k
    return measured(
        cell("mtp", k, repeat=repeat),
        10.0,
        acceptance_length=length,
        acceptance_rate=rate,
        acceptance_per_position=positions,
        acceptance_source="metrics",
    )


def test_rows_of_f06() -> None:
    records = [speculating(4, 2.98, [0.82, 0.58, 0.36, 0.22]), speculating(2, 2.32, [0.78, 0.54])]
    assert body(acceptance_text(acceptance_table(points_of(records)))) == [
        ["mtp", "2", "1", "2.32", "0.660", "0.78 0.54"],
        ["mtp", "4", "1", "2.98", "0.495", "0.82 0.58 0.36 0.22"],
    ]


def test_tokens_per_step_appear_where_a_method_skips_steps() -> None:
    # F25: the mean over drafts is 4.60, but only one step in five had a draft.
    ngram = measured(
        cell("ngram", 5), 10.0, acceptance_length=4.6, acceptance_rate=0.72, tokens_per_step=1.72
    )
    lines = acceptance_text(acceptance_table(points_of([ngram])))
    assert body(lines) == [["ngram", "5", "1", "4.60", "0.720", "1.72", "-"]]
    assert "per step: tokens per decoding step" in " ".join(lines)


def test_the_baseline_has_no_row() -> None:
    lines = acceptance_text(acceptance_table(points_of([measured(cell(), 10.0)])))
    assert lines[-1] == "No cell speculates."
    assert "Nothing was measured" not in " ".join(lines), "`none` was"


def test_median_over_repeats_position_by_position() -> None:
    records = [
        speculating(2, 1.8, [0.5, 0.3], 1),
        speculating(2, 2.0, [0.7, 0.3], 2),
        speculating(2, 1.7, [0.6, 0.1], 3),
    ]
    table = acceptance_table(points_of(records))
    assert table["acceptance_length"].to_list() == [1.8]
    assert table["acceptance_per_position"].to_list() == [[0.6, 0.3]]
    assert table["acceptance_source"].to_list() == ["metrics"]


def test_zero_acceptance_is_shown_as_zero() -> None:
    lines = acceptance_text(acceptance_table(points_of([speculating(2, 1.0, [0.0, 0.0])])))
    assert body(lines) == [["mtp", "2", "1", "1.00", "0.000", "0.00 0.00"]]


def test_many_positions_fit_the_terminal() -> None:
    lines = acceptance_text(acceptance_table(points_of([speculating(16, 2.0, [0.1] * 16)])))
    assert max(map(len, lines)) <= markdown.WIDTH
    assert any(" .. |" in line for line in lines)


@pytest.mark.parametrize("records", [[], [failed(cell("mtp", 1))], [measured(cell("mtp", 1), 5.0)]])
def test_types_do_not_depend_on_the_outcome(records: list[dict]) -> None:
    full = acceptance_table(points_of([speculating(1, 1.5, [0.5])]))
    assert acceptance_table(points_of(records)).schema == full.schema
    acceptance_text(acceptance_table(points_of(records)))


def test_a_failed_cell_shows_its_status() -> None:
    lines = acceptance_text(acceptance_table(points_of([failed(cell("mtp", 1))])))
    assert body(lines) == [["mtp", "1", "1", "failed", "-", "-"]]


def test_a_mislabelled_cell_shows_its_status_and_no_figure() -> None:
    wrong = mislabelled(
        cell("mtp", 2),
        10.0,
        acceptance_length=1.9,
        acceptance_rate=0.45,
        acceptance_per_position=[0.9],
        acceptance_source="metrics",
    )
    table = acceptance_table(points_of([wrong]))
    assert body(acceptance_text(table)) == [["mtp", "2", "1", "mislabelled", "-", "-"]]
    assert table["acceptance_source"].to_list() == [None]
    # Beside a good repeat it leaves no trace in the medians.
    good = speculating(2, 1.7, [0.5, 0.2], repeat=2)
    assert acceptance_table(points_of([wrong, good]))["acceptance_per_position"].to_list() == [[0.5, 0.2]]
