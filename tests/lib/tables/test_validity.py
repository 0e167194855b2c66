"""The table of what is not to be believed."""

from __future__ import annotations

import pytest

from scripts.lib.tables.cells import cells_table
from scripts.lib.tables.validity import validity_line, validity_table, validity_text
from tests.evidence_factory import cell
from tests.lib.tables.reading import body
from tests.lib.tables.test_cells import RECORDS
from tests.record_factory import failed, measured


def text_of(records: list[dict]) -> list[str]:
    return validity_text(validity_table(cells_table(records)))


def test_counts_by_check_then_each_cell_with_its_words() -> None:
    records = [
        measured(cell(), 10.0),
        measured(cell("mtp", 1, 1), 15.0, preemptions=3, wall_s=0.5),
        measured(cell("mtp", 1, 4), 15.0, preemptions=1),
        failed(cell("mtp", 3), reasons=["resource_start (startup): no memory: none"]),
    ]
    lines = text_of(records)
    assert body(lines) == [["preemptions", "2"], ["failed", "1"], ["short_window", "1"]]
    assert lines[0].startswith("3 of 4 cells are not VALID.")
    assert f"  ({cell('mtp', 1, 4).path})" in lines
    assert any("measured for 0.50 s, less than 1 s" in line for line in lines)
    assert "- resource_start (startup): no memory: none" in lines


def test_equal_words_stand_once_and_many_different_ones_are_cut() -> None:
    records = [measured(cell(concurrency=c), 10.0, preemptions=1) for c in range(1, 40)]
    lines = text_of(records)
    assert f"  (39 cells, the first is {cell(concurrency=1).path})" in lines
    assert len(lines) < 15
    records = [measured(cell(concurrency=c), 10.0, preemptions=c) for c in range(1, 40)]
    lines = text_of(records)
    assert lines[-1] == "- and more: validity.csv"
    assert len(lines) < 40


def test_nothing_to_say() -> None:
    assert text_of([measured(cell(), 10.0)]) == ["Nothing speaks against any of the 1 cells."]
    assert text_of([]) == ["There are no cells."]


def test_the_line_for_the_end_of_a_run() -> None:
    good, bad = measured(cell(), 10.0), measured(cell("mtp", 1), 15.0, preemptions=1)
    assert validity_line(cells_table([good])) is None
    assert validity_line(cells_table([good, bad])) == "1 of 2 measured cells is INVALID (preemptions)."
    assert validity_line(cells_table([good, failed(cell("mtp", 3))])) is None


@pytest.mark.parametrize("records", RECORDS.values(), ids=list(RECORDS))
def test_any_outcome_can_be_told(records: list[dict]) -> None:
    assert text_of(records)
