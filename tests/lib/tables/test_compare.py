"""What is compared with what: the same conditions or nothing."""

from __future__ import annotations

import pytest

from scripts.lib.tables.cells import cells_table
from tests.evidence_factory import cell
from tests.record_factory import failed, measured, mislabelled


def speedups(records: list[dict]) -> dict[tuple[str, int], float | None]:
    rows = cells_table(records).iter_rows(named=True)
    return {(row["method"], row["concurrency"]): row["speedup"] for row in rows}


def reason(records: list[dict], method: str) -> str | None:
    row = next(row for row in cells_table(records).iter_rows(named=True) if row["method"] == method)
    return next((text for text in row["absent"] if text.startswith("speedup:")), None)


def test_study_a() -> None:
    records = [
        measured(cell("none", 0, 1), 81.27, per_request_tps=81.27),
        measured(cell("dspark", 3, 1), 124.24, per_request_tps=124.24),
        measured(cell("none", 0, 8), 241.67, per_request_tps=30.97),
        measured(cell("dspark", 3, 8), 354.56, per_request_tps=45.0),
    ]
    found = speedups(records)
    assert found["dspark", 1] == pytest.approx(1.5287, abs=1e-4)
    assert found["dspark", 8] == pytest.approx(1.4671, abs=1e-4)
    assert found["none", 1] == found["none", 8] == 1


def test_concurrency_1_compares_requests_and_higher_ones_the_total() -> None:
    records = [
        measured(cell("none", 0, 1), 10.0, per_request_tps=20.0),
        measured(cell("mtp", 1, 1), 30.0, per_request_tps=50.0),
        measured(cell("none", 0, 2), 10.0, per_request_tps=20.0),
        measured(cell("mtp", 1, 2), 30.0, per_request_tps=50.0),
    ]
    found = speedups(records)
    assert found["mtp", 1] == 2.5
    assert found["mtp", 2] == 3.0


@pytest.mark.parametrize(
    "other",
    [
        {"hardware": "h100"},
        {"engine": "sglang"},
        {"model": "nemotron"},
        {"max_model_len": 2048},
        {"scenario": "chat"},
        {"concurrency": 4},
        {"repeat": 2},
    ],
    ids=lambda other: next(iter(other)),
)
def test_a_baseline_of_other_conditions_is_none(other: dict) -> None:
    records = [measured(cell("none", **other), 10.0), measured(cell("mtp", 1), 20.0)]
    assert speedups(records)["mtp", 1] is None
    assert "no `none` cell with the same hardware, engine" in reason(records, "mtp")


def test_a_failed_baseline_gives_no_ratio_and_says_so() -> None:
    records = [failed(cell("none")), measured(cell("mtp", 1), 20.0)]
    assert speedups(records)["mtp", 1] is None
    assert reason(records, "mtp") == "speedup: the `none` cell has no usable throughput (status failed)"
    assert reason(records, "none") == "speedup: this cell has no usable throughput (status failed)"


def test_a_mislabelled_cell_is_compared_with_nothing_and_is_no_baseline() -> None:
    records = [
        measured(cell("none"), 10.0),
        mislabelled(cell("mtp", 3), 20.0),
        measured(cell("mtp", 1), 15.0),
    ]
    table = cells_table(records)
    assert table["speedup"].to_list() == [1.5, None, 1.0]
    assert table["aggregate_tps"].to_list() == [15.0, 20.0, 10.0]
    assert "speedup: this cell has no usable throughput (status mislabelled)" in table["absent"].to_list()[1]
    records = [mislabelled(cell("none"), 10.0), measured(cell("mtp", 1), 20.0)]
    assert speedups(records)["mtp", 1] is None
    assert reason(records, "mtp") == "speedup: the `none` cell has no usable throughput (status mislabelled)"


def test_a_baseline_of_zero_divides_nothing() -> None:
    records = [measured(cell("none"), 0.0), measured(cell("mtp", 1), 20.0)]
    assert speedups(records)["mtp", 1] is None


def test_each_repeat_has_its_own_baseline() -> None:
    records = [
        measured(cell("none", repeat=1), 10.0),
        measured(cell("none", repeat=2), 20.0),
        measured(cell("mtp", 1, repeat=1), 20.0),
        measured(cell("mtp", 1, repeat=2), 20.0),
    ]
    table = cells_table(records)
    mtp = table.filter(table["method"] == "mtp").sort("repeat")
    assert mtp["speedup"].to_list() == [2.0, 1.0]


def kv_changes(records: list[dict]) -> list[float | None]:
    return cells_table(records)["kv_cache_change"].to_list()


def test_kv_cache_change_of_f15() -> None:
    records = [
        measured(cell("eagle", 3), 1.0, kv_cache_tokens=13120),
        measured(cell("none"), 1.0, kv_cache_tokens=41984),
    ]
    eagle, none = kv_changes(records)
    assert eagle == pytest.approx(-68.75)
    assert none == 0


def test_kv_cache_is_not_compared_across_lengths() -> None:
    records = [
        measured(cell("eagle", 3, max_model_len=2048), 1.0, kv_cache_tokens=100),
        measured(cell("none", max_model_len=1024), 1.0, kv_cache_tokens=200),
    ]
    assert kv_changes(records) == [None, 0]


def test_the_kv_cache_of_a_mislabelled_server_is_compared_with_nothing() -> None:
    records = [
        mislabelled(cell("eagle", 3), 1.0, kv_cache_tokens=100),
        measured(cell("none"), 1.0, kv_cache_tokens=200),
    ]
    assert kv_changes(records) == [None, 0]
    records = [
        measured(cell("eagle", 3), 1.0, kv_cache_tokens=100),
        mislabelled(cell("none"), 1.0, kv_cache_tokens=200),
    ]
    assert kv_changes(records) == [None, None]
