"""One row per point: medians, intervals and verdicts over the repeats that count."""

from __future__ import annotations

from statistics import median

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scripts.lib.statistics import compare, mean_interval, spread
from scripts.lib.tables.cells import cells_table
from scripts.lib.tables.points import POINTS_SCHEMA, compare_points, points_table
from tests.evidence_factory import cell
from tests.lib.tables.test_cells import RECORDS
from tests.record_factory import failed, infeasible, measured, mislabelled


def repeats(method: str, k: int, *tps: float, concurrency: int = 1, **values: object) -> list[dict]:
    return [
        measured(cell(method, k, concurrency, repeat=number), value, **values)
        for number, value in enumerate(tps, start=1)
    ]


def points(*records: dict) -> dict[tuple[str, int], dict]:
    rows = points_table(cells_table(records)).iter_rows(named=True)
    return {(row["method"], row["k"]): row for row in rows}


@pytest.mark.parametrize("records", RECORDS.values(), ids=list(RECORDS))
def test_columns_and_types_never_change(records: list[dict]) -> None:
    assert dict(points_table(cells_table(records)).schema) == POINTS_SCHEMA


def test_median_interval_and_spread_over_repeats() -> None:
    row = points(*repeats("none", 0, 97.0, 103.0, 100.0, 99.0))["none", 0]
    assert row["per_request_tps"] == 99.5
    low, high = mean_interval([97.0, 103.0, 100.0, 99.0])
    assert (row["per_request_tps_low"], row["per_request_tps_high"]) == pytest.approx((low, high))
    assert row["per_request_tps_spread"] == pytest.approx(6 / 99.5)
    assert row["noise_floor"] == pytest.approx(6 / 99.5)
    assert (row["repeats_asked"], row["repeats_valid"], row["verdict"]) == (4, 4, "baseline")


def test_a_single_run_has_no_interval_and_no_verdict() -> None:
    found = points(*repeats("none", 0, 100.0), *repeats("mtp", 1, 150.0))
    row = found["mtp", 1]
    assert (row["speedup"], row["verdict"]) == (1.5, "single run")
    for name in ("per_request_tps_low", "per_request_tps_high", "per_request_tps_spread", "speedup_low"):
        assert row[name] is None
    assert row["noise_floor"] is None


def test_speedup_is_paired_by_repeat() -> None:
    found = points(*repeats("none", 0, 10.0, 20.0, 40.0), *repeats("mtp", 1, 20.0, 20.0, 60.0))
    row = found["mtp", 1]
    assert row["speedup"] == pytest.approx(3 ** (1 / 3))
    assert row["speedup_low"] < 1 < row["speedup_high"]
    assert row["verdict"] == "unresolved"
    assert row["repeats"] == [1, 2, 3]
    assert row["headline_tps"] == [20.0, 20.0, 60.0]


def test_f06_k2_beats_k4_at_concurrency_8_and_ties_at_1() -> None:
    def rows(concurrency: int, k4: tuple, k2: tuple) -> tuple[dict, dict]:
        found = points(
            *repeats("mtp", 4, *k4, concurrency=concurrency), *repeats("mtp", 2, *k2, concurrency=concurrency)
        )
        return found["mtp", 2], found["mtp", 4]

    assert compare_points(*rows(1, (56.1, 55.0, 56.9), (55.4, 56.3, 54.8))).verdict == "unresolved"
    win = compare_points(*rows(8, (199, 204, 200), (288, 281, 295)))
    assert (win.verdict, round(win.ratio, 2)) == ("faster", 1.43)


def test_only_valid_repeats_count() -> None:
    found = points(*repeats("none", 0, 100.0, 102.0), failed(cell(repeat=3)))
    row = found["none", 0]
    assert (row["validity"], row["repeats_asked"], row["repeats_valid"]) == ("VALID", 3, 2)
    assert row["per_request_tps"] == 101.0
    assert row["statuses"] == ["measured", "failed"]
    assert [reason.partition(":")[0] for reason in row["validity_reasons"]] == ["failed"]


def test_an_invalid_point_keeps_its_figures_and_gets_no_verdict() -> None:
    found = points(*repeats("none", 0, 100.0, 101.0), *repeats("mtp", 1, 150.0, 152.0, completed=7, failed=1))
    row = found["mtp", 1]
    assert (row["validity"], row["per_request_tps"]) == ("INVALID", 151.0)
    assert row["speedup"] == pytest.approx(1.5, rel=0.01)
    assert (row["verdict"], row["verdict_reason"]) == ("no verdict", "mtp k1 is INVALID (incomplete)")


def test_the_milder_verdict_counts_where_nothing_is_valid() -> None:
    unfair = [
        measured(cell("mtp", 1, repeat=1), 150.0, max_num_seqs=128),
        measured(cell("mtp", 1, repeat=2), 500.0, max_num_seqs=128, wall_s=0.1),
    ]
    baseline = repeats("none", 0, 100.0, 100.0, max_num_seqs=256)
    row = points(*baseline, *unfair)["mtp", 1]
    assert (row["validity"], row["per_request_tps"], row["repeats"]) == ("UNFAIR", 150.0, [1])


def test_an_invalid_baseline_gives_a_ratio_but_no_verdict() -> None:
    found = points(*repeats("none", 0, 100.0, 101.0, wall_s=0.2), *repeats("mtp", 1, 150.0, 152.0))
    row = found["mtp", 1]
    assert row["speedup"] == pytest.approx(1.5, rel=0.01)
    assert (row["verdict"], row["verdict_reason"]) == ("no verdict", "none is INVALID (short_window)")
    assert (row["validity"], row["baseline_validity"]) == ("VALID", "INVALID")
    assert found["none", 0]["baseline_validity"] is None
    assert found["none", 0]["verdict"] == "no verdict"


def test_no_baseline_at_all() -> None:
    row = points(*repeats("mtp", 1, 150.0, 152.0))["mtp", 1]
    assert (row["speedup"], row["baseline_validity"], row["verdict"]) == (None, None, "no verdict")
    assert "no `none` under the same conditions" in row["verdict_reason"]


def test_mislabelled_and_infeasible_points_have_no_figure() -> None:
    found = points(*repeats("none", 0, 100.0), mislabelled(cell("mtp", 1), 300.0), infeasible(cell("mtp", 3)))
    for key, status in ((("mtp", 1), "mislabelled"), (("mtp", 3), "infeasible")):
        row = found[key]
        assert (row["validity"], row["statuses"], row["per_request_tps"]) == ("INVALID", [status], None)
        assert row["validity_reasons"][0].startswith(f"{status}: ")


def test_synthetic_acceptance_is_a_point_of_its_own() -> None:
    records = [
        *repeats("none", 0, 100.0, 101.0, 100.0),
        measured(cell("mtp", 3, repeat=1), 150.0),
        measured(cell("mtp", 3, repeat=2), 300.0, synthetic=True),
        measured(cell("mtp", 3, repeat=3), 151.0),
    ]
    table = points_table(cells_table(records)).filter(pl.col("method") == "mtp").sort("synthetic")
    assert table["synthetic"].to_list() == [False, True]
    assert table["per_request_tps"].to_list() == [150.5, 300.0]
    assert table["repeats_asked"].to_list() == [2, 1]
    real, made_up = table.to_dicts()
    assert compare_points(real, made_up).verdict == "no verdict"
    assert "synthetic" in compare_points(real, made_up).reason


def test_a_synthetic_row_is_no_baseline() -> None:
    records = [measured(cell(), 100.0, synthetic=True), measured(cell("mtp", 1), 150.0)]
    table = cells_table(records)
    assert table.filter(pl.col("method") == "mtp")["speedup"].to_list() == [None]
    row = points(*records)["mtp", 1]
    assert (row["speedup"], row["verdict"]) == (None, "no verdict")


def test_positions_are_medians_position_by_position() -> None:
    shares = ([0.5, 0.3], [0.7, 0.3], [0.6, 0.1])
    records = [
        measured(cell("mtp", 2, repeat=number), 10.0, acceptance_per_position=share)
        for number, share in enumerate(shares, start=1)
    ]
    assert points(*records)["mtp", 2]["acceptance_per_position"] == [0.6, 0.3]


@settings(max_examples=10, deadline=None)
@given(st.lists(st.tuples(st.floats(1.0, 1e4), st.floats(1.0, 1e4)), min_size=1, max_size=6))
def test_the_table_says_what_the_statistics_say(pairs: list[tuple[float, float]]) -> None:
    base, own = ([pair[side] for pair in pairs] for side in (0, 1))
    row = points(*repeats("none", 0, *base), *repeats("mtp", 9999, *own))["mtp", 9999]
    by_repeat = [dict(enumerate(values, start=1)) for values in (own, base)]
    found = compare(*by_repeat)
    assert (row["speedup"], row["verdict"]) == (pytest.approx(found.ratio), found.verdict)
    assert row["per_request_tps"] == pytest.approx(median(own))
    interval = (row["per_request_tps_low"], row["per_request_tps_high"])
    known = mean_interval(own)
    assert interval == (None, None) if known is None else interval == pytest.approx(known, rel=1e-6, abs=1e-6)
    assert row["per_request_tps_spread"] == pytest.approx(spread(own))
    assert row["noise_floor"] == pytest.approx(spread(base))


def test_a_percentile_is_over_the_repeats_that_have_enough_requests() -> None:
    records = repeats("none", 0, 10.0, 10.0, 10.0)
    for record, p99 in zip(records, (0.5, None, 0.7), strict=True):
        record["ttft_p99_s"] = p99
    row = points(*records)["none", 0]
    assert row["ttft_p99_s"] == pytest.approx(0.6)
    assert (row["ttft_p99_s_low"], row["ttft_p99_s_high"]) == pytest.approx(mean_interval([0.5, 0.7]))


def test_points_are_in_reading_order() -> None:
    records = [
        measured(cell(method, k, c), 10.0)
        for method, k in (("mtp", 3), ("eagle", 1), ("none", 0))
        for c in (8, 1)
    ]
    table = points_table(cells_table(records))
    assert table.select("method", "concurrency").rows() == [
        (method, c) for method in ("none", "eagle", "mtp") for c in (1, 8)
    ]
