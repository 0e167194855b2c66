"""Latency: percentiles where they can be known, and nothing that misleads under speculation."""

from __future__ import annotations

import pytest

from scripts.lib.tables import markdown
from scripts.lib.tables.latency import latency_table, latency_text
from tests.evidence_factory import cell
from tests.lib.tables.reading import body, header
from tests.lib.tables.test_cells import RECORDS
from tests.record_factory import failed, measured, points_of


def timed(method: str, k: int, ttft: float, tpot: float, repeat: int = 1, **more: object) -> dict:
    times = {"ttft_median_s": ttft, "tpot_median_s": tpot}
    return measured(cell(method, k, repeat=repeat), 10.0, **times, **more)


def test_f19_time_per_token_and_no_gap_between_chunks() -> None:
    records = [timed("none", 0, 0.05, 0.0201), timed("mtp", 3, 0.05, 0.0119, acceptance_length=4.0)]
    lines = latency_text(latency_table(points_of(records)))
    assert header(lines) == ["method", "k", "c", "ttft median (s)", "tpot median (s)"]
    assert body(lines) == [["none", "-", "1", "0.050", "0.0201"], ["mtp", "3", "1", "0.050", "0.0119"]]
    assert "is no such figure" in " ".join(lines)
    assert not any("itl" in name for name in latency_table(points_of(records)).columns)


def test_percentiles_that_no_cell_has_are_named_once() -> None:
    lines = latency_text(latency_table(points_of([timed("none", 0, 0.1, 0.02, ttft_p90_s=0.3)])))
    assert header(lines)[3:5] == ["ttft median (s)", "ttft p90 (s)"]
    assert "No cell has: time to first token p99, time per output token p90" in " ".join(lines)


def test_medians_and_intervals_over_repeats() -> None:
    records = [timed("none", 0, ttft, 0.02, number) for number, ttft in enumerate((0.1, 0.2, 0.6), start=1)]
    (row,) = latency_table(points_of(records)).to_dicts()
    assert row["ttft_median_s"] == 0.2
    assert row["ttft_median_s_low"] < 0.3 < row["ttft_median_s_high"]
    assert row["measured"] == 3


def test_a_failed_cell_shows_its_status_and_a_doubtful_one_its_mark() -> None:
    records = [failed(cell()), timed("mtp", 1, 0.1, 0.02, wall_s=0.2)]
    lines = latency_text(latency_table(points_of(records)))
    assert body(lines) == [["none", "-", "1", "failed", "-"], ["mtp", "1", "1", "0.100", "0.0200 !!"]]


@pytest.mark.parametrize("records", RECORDS.values(), ids=list(RECORDS))
def test_types_do_not_depend_on_the_outcome(records: list[dict]) -> None:
    table = latency_table(points_of(records))
    assert table.schema == latency_table(points_of([timed("none", 0, 0.1, 0.02)])).schema
    assert max(map(len, latency_text(table))) <= markdown.WIDTH
