"""Spread, intervals and verdicts, on figures whose answers are known."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.lib import statistics
from scripts.lib.statistics import compare, half_width, mean_interval, spread

SPEEDS = st.lists(st.floats(1.0, 1e4), min_size=2, max_size=8)


def by_repeat(*values: float | None) -> dict[int, float | None]:
    return dict(enumerate(values, start=1))


def verdict(values: tuple, reference: tuple) -> str:
    return compare(by_repeat(*values), by_repeat(*reference)).verdict


def test_half_widths_are_those_of_the_t_table() -> None:
    # t(0.975) with 1, 2 and 9 degrees of freedom: 12.706, 4.303, 2.262.
    assert half_width(2) == pytest.approx(12.706 / math.sqrt(2), abs=1e-3)
    assert half_width(3) == pytest.approx(4.303 / math.sqrt(3), abs=1e-3)
    assert half_width(10) == pytest.approx(2.262 / math.sqrt(10), abs=1e-3)
    with pytest.raises(ValueError, match="two samples"):
        half_width(1)


def test_an_interval_worked_by_hand() -> None:
    # Mean 10, standard deviation 1, three samples.
    low, high = mean_interval([9.0, 10.0, 11.0])
    assert (low, high) == pytest.approx((10 - 2.484, 10 + 2.484), abs=1e-3)


def test_one_value_has_neither_interval_nor_spread() -> None:
    assert mean_interval([5.0]) is None
    assert spread([5.0]) is None
    assert spread([]) is None
    assert spread([-1.0, 1.0]) is None


def test_spread_is_the_range_over_the_median() -> None:
    assert spread([97.0, 100.0, 103.0]) == pytest.approx(0.06)


def test_f06_a_tie_at_concurrency_1_and_a_winner_at_8() -> None:
    tie = compare(by_repeat(55.4, 56.3, 54.8), by_repeat(56.1, 55.0, 56.9))
    assert tie.verdict == "unresolved"
    assert "holds 1" in tie.reason
    win = compare(by_repeat(288, 281, 295), by_repeat(199, 204, 200))
    assert (win.verdict, round(win.ratio, 2), win.reason) == ("faster", 1.43, "")
    assert win.low > 1.2


@pytest.mark.parametrize(
    ("values", "reference", "expected"),
    [
        ((150, 152, 149), (100, 99, 101), "faster"),
        ((66, 67, 65), (100, 99, 101), "slower"),
        ((104, 101, 107), (100, 103, 100), "unresolved"),
        ((120,), (100,), "single run"),
        ((), (100, 101), "no verdict"),
        ((None, None), (100, 101), "no verdict"),
    ],
)
def test_verdicts(values: tuple, reference: tuple, expected: str) -> None:
    assert verdict(values, reference) == expected


@pytest.mark.parametrize("percent", [2, 3, 4, 5, 6])
def test_study_c_a_difference_within_the_scatter_of_repeats_is_unresolved(percent: int) -> None:
    # Drafter configurations move about 6% from boot to boot: however many repeats, 2-6% is not called.
    moves = (-3, 3, 0, -2, 2, -1, 1, -3, 3, 0)
    one = tuple(100 + move for move in moves)
    drifting = tuple((1 + percent / 100) * value for value in one)
    assert verdict(drifting, one) == "unresolved"
    other = tuple((1 + percent / 100) * (100 + move) for move in reversed(moves))
    assert verdict(other, one) == "unresolved"


def test_the_same_difference_is_resolved_where_repeats_are_quiet() -> None:
    # As `none` in study C, which reproduces within 0.5%.
    assert verdict((104.1, 104.0, 103.9), (100.2, 100.0, 99.8)) == "faster"


def test_pairing_takes_a_common_drift_out_of_the_interval() -> None:
    found = compare(by_repeat(150, 165, 180), by_repeat(100, 110, 120))
    assert found.verdict == "faster"
    assert found.low == pytest.approx(found.high) == pytest.approx(1.5)


def test_only_repeats_that_both_sides_have_are_paired() -> None:
    found = compare({1: 20.0, 3: 30.0, 4: None}, {1: 10.0, 2: 99.0, 4: 10.0})
    assert (found.pairs, found.ratio, found.verdict) == (1, pytest.approx(2.0), "single run")


def test_noise_is_seen_in_repeats_that_have_no_partner_too() -> None:
    # Two quiet pairs 3% apart, but the baseline's third repeat shows that it moves by 6%.
    pairs, third = {1: 100.0, 2: 100.2}, {3: 106.0}
    method = {1: 103.0, 2: 103.1}
    assert compare(method, pairs).verdict == "faster"
    for found in (compare(method, pairs | third), compare(method | {4: 97.0, 5: None}, pairs)):
        assert (found.verdict, found.pairs) == ("unresolved", 2)
        assert "scatter by" in found.reason


@pytest.mark.parametrize("zero", [0.0, None])
def test_a_zero_is_no_figure_to_divide_by(zero: float | None) -> None:
    assert compare({1: 10.0}, {1: zero}).ratio is None
    assert compare({1: zero}, {1: 10.0}).verdict == "no verdict"


@given(SPEEDS, st.floats(0.2, 5.0), st.data())
def test_swapping_the_sides_turns_the_answer_round(
    values: list[float], factor: float, data: st.DataObject
) -> None:
    noise = data.draw(st.lists(st.floats(0.9, 1.1), min_size=len(values), max_size=len(values)))
    other = [factor * value * wobble for value, wobble in zip(values, noise, strict=True)]
    forth, back = (
        compare(by_repeat(*values), by_repeat(*other)),
        compare(by_repeat(*other), by_repeat(*values)),
    )
    assert forth.ratio * back.ratio == pytest.approx(1)
    assert forth.low <= forth.ratio * (1 + 1e-9)
    assert forth.high >= forth.ratio * (1 - 1e-9)
    opposite = {"faster": "slower", "slower": "faster"}
    assert back.verdict == opposite.get(forth.verdict, forth.verdict)


@given(SPEEDS)
def test_nothing_is_faster_than_itself(values: list[float]) -> None:
    assert verdict(tuple(values), tuple(values)) == "unresolved"


def test_all_verdicts_are_known() -> None:
    assert statistics.VERDICTS == ("baseline", "faster", "slower", "unresolved", "single run", "no verdict")
