"""Machines side by side."""

from __future__ import annotations

import pytest

from scripts.lib.tables.hardware import hardware_table, hardware_text
from tests.evidence_factory import cell
from tests.lib.tables.reading import body, header
from tests.lib.tables.test_cells import RECORDS
from tests.record_factory import failed, measured, points_of


def test_a_column_for_every_machine_and_engine() -> None:
    records = [
        measured(cell(hardware="h200"), 100.0),
        measured(cell("mtp", 3, hardware="h200"), 150.0),
        measured(cell(hardware="gb10"), 20.0),
        failed(cell("mtp", 3, hardware="gb10")),
    ]
    lines = hardware_text(hardware_table(points_of(records)))
    assert header(lines) == ["method", "k", "c", "gb10 vllm", "h200 vllm"]
    assert body(lines) == [["none", "-", "1", "20.0", "100.0"], ["mtp", "3", "1", "failed", "150.0 (1.50x)"]]


def test_a_ratio_carries_the_mark_of_its_own_machines_baseline() -> None:
    records = [
        measured(cell(method, k, hardware=hardware), tps, wall_s=wall_s if method == "none" else 60.0)
        for hardware, wall_s in (("a", 0.2), ("b", 60.0))
        for method, k, tps in (("none", 0, 20.0), ("mtp", 3, 30.0))
    ]
    lines = hardware_text(hardware_table(points_of(records)))
    assert body(lines) == [
        ["none", "-", "1", "20.0 !!", "20.0"],
        ["mtp", "3", "1", "30.0 (1.50x !!)", "30.0 (1.50x)"],
    ]


def test_different_lengths_and_scenarios_are_blocks_of_their_own() -> None:
    records = [
        measured(cell(hardware=hardware, scenario=scenario), 10.0)
        for hardware in ("a", "b")
        for scenario in ("x", "y")
    ]
    lines = hardware_text(hardware_table(points_of(records)))
    assert sum(line.startswith("## ") for line in lines) == 2


def test_what_one_machine_measured_alone_is_left_out() -> None:
    records = [measured(cell(hardware=hardware, model="shared"), 10.0) for hardware in ("a", "b")]
    records += [measured(cell(hardware="a", model="only-here"), 10.0)]
    records += [measured(cell(hardware="c", model="only-there"), 10.0)]
    lines = hardware_text(hardware_table(points_of(records)))
    assert header(lines)[3:] == ["a vllm", "b vllm"]
    assert not any("only" in line for line in lines)


def test_two_engines_of_one_machine_stand_side_by_side_and_unequal_conditions_are_said() -> None:
    def both(vllm: dict, sglang: dict) -> list[str]:
        records = [
            measured(cell(method, k, concurrency, engine=engine), 10.0, **values)
            for engine, values in (("vllm", vllm), ("sglang", sglang))
            for method, k in (("none", 0), ("mtp", 3))
            for concurrency in (1, 4)
        ]
        return hardware_text(hardware_table(points_of(records)))

    slots = {"max_num_seqs": 16}
    equal = both(slots, slots)
    assert header(equal)[3:] == ["cpu sglang", "cpu vllm"]
    assert not any("Not alike" in line for line in equal)
    assert (
        both(slots, {"max_num_seqs": 32})[-1]
        == "- Not alike: slots (max_num_seqs) 32 (cpu sglang), 16 (cpu vllm)."
    )
    assert both({}, slots)[-1] == "- Not alike: slots (max_num_seqs) 16 (cpu sglang), not told (cpu vllm)."
    assert both(slots | {"requests": 20}, slots | {"requests": 40})[-2:] == [
        "- Not alike: requests at c1 40 (cpu sglang), 20 (cpu vllm).",
        "- Not alike: requests at c4 40 (cpu sglang), 20 (cpu vllm).",
    ]


def test_what_differs_within_an_engine_too_is_told_in_full() -> None:
    records = [
        measured(cell(engine="a"), 10.0, max_num_seqs=16),
        measured(cell(engine="b"), 10.0, max_num_seqs=16),
    ]
    records += [
        measured(cell("mtp", 3, engine="b"), 10.0, max_num_seqs=8),
        failed(cell("mtp", 3, engine="a")),
    ]
    lines = hardware_text(hardware_table(points_of(records)))
    assert lines[-1] == "- Not alike: slots (max_num_seqs) 16 (cpu a), 8 or 16 (cpu b)."


def test_one_machine_has_nothing_beside_it() -> None:
    lines = hardware_text(hardware_table(points_of([measured(cell(), 10.0)])))
    assert lines == [
        "No model and scenario was measured on two machines. There is nothing to put side by side."
    ]
    assert "Nothing was measured." in hardware_text(hardware_table(points_of([])))[0]


@pytest.mark.parametrize("records", RECORDS.values(), ids=list(RECORDS))
def test_types_do_not_depend_on_the_outcome(records: list[dict]) -> None:
    table = hardware_table(points_of(records))
    assert table.schema == hardware_table(points_of([measured(cell(), 1.0)])).schema
    hardware_text(table)
