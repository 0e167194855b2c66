"""The arithmetic, against values computed by hand and against study A's published baseline."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.lib import formulas


@pytest.mark.parametrize(
    ("tokens", "wall_s", "published"), [(11853, 145.77, 81.31), (98185, 406.28, 241.67)], ids=["c1", "c8"]
)
def test_aggregate_tps_reproduces_study_a(tokens: int, wall_s: float, published: float) -> None:
    assert formulas.aggregate_tps(tokens, wall_s) == pytest.approx(published, abs=0.005)


@pytest.mark.parametrize(("tokens", "completed", "published"), [(11853, 10, 1185.3), (98185, 80, 1227.3)])
def test_tokens_per_request_reproduces_study_a(tokens: int, completed: int, published: float) -> None:
    assert formulas.tokens_per_request(tokens, completed) == pytest.approx(published, abs=0.05)


@pytest.mark.parametrize(
    ("value", "baseline", "percent"),
    [(111.36, 81.27, 137.02), (95.48, 81.27, 117.48), (124.24, 81.27, 152.87), (302.27, 241.67, 125.08)],
)
def test_speedup_reproduces_study_a(value: float, baseline: float, percent: float) -> None:
    assert 100 * formulas.speedup(value, baseline) == pytest.approx(percent, abs=0.01)


def test_per_request_tps_is_the_mean_of_rates_not_the_rate_of_means() -> None:
    # 100/10 = 10 and 100/2.5 = 40: their mean is 25, while 200 tokens / 12.5 s would be 16.
    assert formulas.per_request_tps([100, 100], [10.0, 2.5]) == 25


def test_speedup_of_f19_by_tpot() -> None:
    assert formulas.speedup(1 / 11.9, 1 / 20.1) == pytest.approx(1.69, abs=0.005)


def test_tpot_leaves_out_the_first_token() -> None:
    assert formulas.tpot_s(elapsed_s=5.1, ttft_s=0.1, tokens=51) == pytest.approx(0.1)


@pytest.mark.parametrize("tokens", [0, 1])
def test_an_output_of_one_token_has_no_tpot(tokens: int) -> None:
    assert formulas.tpot_s(elapsed_s=0.1, ttft_s=0.1, tokens=tokens) is None


def test_what_cannot_be_divided_is_none() -> None:
    assert formulas.per_request_tps([], []) is None
    assert formulas.per_request_tps([5, 5], [1.0, 0.0]) is None
    assert formulas.aggregate_tps(10, 0.0) is None
    assert formulas.tokens_per_request(0, 0) is None
    assert formulas.speedup(10.0, 0.0) is None
    assert formulas.speedup(10.0, None) is None
    assert formulas.speedup(None, 10.0) is None
    assert formulas.mean([]) is None
    assert formulas.median([]) is None


def test_zero_tokens_are_zero_not_absent() -> None:
    assert formulas.aggregate_tps(0, 2.0) == 0
    assert formulas.speedup(0.0, 10.0) == 0


def test_median_and_percentile_interpolate() -> None:
    assert formulas.median([4.0, 1.0, 3.0, 2.0]) == 2.5
    assert formulas.percentile([float(n) for n in range(101)], 0.9) == 90
    assert formulas.percentile([float(n) for n in range(31)], 0.9) == 27


@pytest.mark.parametrize(("share", "needed"), [(0.5, 5), (0.9, 29), (0.99, 299)])
def test_a_percentile_needs_its_samples(share: float, needed: int) -> None:
    assert formulas.samples_needed(share) == needed
    assert formulas.percentile([1.0] * (needed - 1), share) is None
    assert formulas.percentile([1.0] * needed, share) == 1


@given(st.lists(st.floats(0, 1e6), min_size=29), st.sampled_from([0.5, 0.9]))
def test_a_percentile_lies_among_its_samples(values: list[float], share: float) -> None:
    assert min(values) <= formulas.percentile(values, share) <= max(values)
