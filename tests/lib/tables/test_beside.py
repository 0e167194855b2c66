"""Two servers on one device: what each pays."""

from __future__ import annotations

from scripts.lib.tables.beside import beside_table, beside_text
from scripts.lib.tables.cells import cells_table
from tests.evidence_factory import cell
from tests.lib.tables.reading import body
from tests.record_factory import failed, measured

BUSY = {"beside": "nano none, chat at 2", "beside_method": "none", "beside_tps": 55.0}
IDLE = {"beside": "nano none, idle", "beside_method": "none", "beside_tps": None}


def lines_of(records):
    return body(beside_text(beside_table(cells_table(records))))


def test_each_row_is_held_against_the_same_method_alone():
    records = [
        measured(cell(), 100.0),
        measured(cell("with-nano-idle"), 95.0, **IDLE),
        measured(cell("with-nano"), 60.0, **BUSY),
    ]
    assert lines_of(records) == [
        [records[0]["model"], "with-nano", "-", "1", "nano none, chat at 2", "60.0", "100.0", "-40%", "55.0"],
        [records[0]["model"], "with-nano-idle", "-", "1", "nano none, idle", "95.0", "100.0", "-5%", "-"],
    ]


def test_repeats_are_one_row_and_what_failed_is_left_out():
    records = [
        *(
            measured(cell("with-nano", repeat=repeat), tps, **BUSY)
            for repeat, tps in ((1, 50.0), (2, 60.0), (3, 70.0))
        ),
        failed(cell("with-nano", repeat=4)),
    ]
    (row,) = lines_of(records)
    assert row[5:] == ["60.0", "-", "-", "55.0"], "nothing was measured alone"


def test_repeats_that_are_not_believed_are_left_out_or_marked():
    disturbed = {"foreign_cpu_share": 0.5}
    records = [
        measured(cell(), 100.0),
        measured(cell(repeat=2), 20.0, **disturbed),
        measured(cell("with-nano"), 60.0, **BUSY),
        measured(cell("with-nano", repeat=2), 10.0, **BUSY, **disturbed),
        measured(cell("with-nano", concurrency=4), 50.0, **BUSY, **disturbed),
    ]
    alone, crowded = lines_of(records)
    assert alone[5:] == ["60.0", "100.0", "-40%", "55.0"]
    assert crowded[5:] == ["50.0 !!", "-", "-", "55.0"]
    text = " ".join(beside_text(beside_table(cells_table(records))))
    assert "Marks: !! INVALID, not to be believed: see validity.md." in text
    assert "Marks" not in " ".join(beside_text(beside_table(cells_table(records[:4]))))


def test_made_up_acceptance_is_held_against_none_but_its_own():
    records = [
        measured(cell("mtp", 3), 100.0),
        measured(cell("mtp-beside", 3), 90.0, **BUSY | {"beside_method": "mtp"}, synthetic=True),
    ]
    row = lines_of(records)[0]
    assert (row[1], row[6]) == ("mtp-beside (synthetic)", "-")


def test_a_sweep_without_neighbours_says_so():
    assert beside_text(beside_table(cells_table([measured(cell(), 1.0)]))) == [
        "No server had another one beside it (key `beside` of a method)."
    ]
