"""From a K curve to k by number of running requests."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.lib.deploy.schedule import EngineFacts, curves, derive, ranges
from tests.lib.recommend.cases import candidate, operating_point

VLLM = EngineFacts("vllm", "0.27.1", 1, 256)


def point(concurrency: int, scenario: str = "code", **tps: list[float]):
    """Throughputs by name, e.g. none=[80.0], k3=[120.0] (of mtp)."""
    made = [
        candidate("none" if name == "none" else f"mtp {name}", values, concurrency)
        for name, values in tps.items()
    ]
    return operating_point(*made, scenario=scenario)


def schedule_of(*points, facts: EngineFacts = VLLM):
    deployed = [points[0].candidates[-1].server]
    return derive(deployed, points, {}, lambda server: facts)


CURVE = (
    point(1, none=[80.0], k1=[100.0], k3=[120.0]),
    point(4, none=[240.0], k1=[300.0], k3=[310.0]),
    point(16, none=[700.0], k1=[720.0], k3=[600.0]),
    point(64, none=[1500.0], k1=[1400.0], k3=[1000.0]),
)


def test_k_falls_with_the_number_of_requests() -> None:
    (schedule,), notes = schedule_of(*CURVE)
    assert schedule.best_k == {1: 3, 4: 3, 16: 1, 64: 0}
    # Borders at the geometric means: 8 between 4 and 16, 32 between 16 and 64.
    assert schedule.ranges == ((1, 8, 3), (9, 32, 1), (33, 256, 0))
    assert (schedule.name, schedule.server.method, schedule.server.k) == ("mtp-schedule", "mtp", 3)
    assert schedule.fixed_k == 1
    assert notes == []


def test_a_k_that_is_best_everywhere_needs_no_schedule() -> None:
    schedules, (note,) = schedule_of(CURVE[0], CURVE[1])
    assert schedules == []
    assert "of the k of mtp, the method that gains most over all concurrencies, 3 is best at each" in note


def test_differences_within_noise_do_not_make_a_schedule() -> None:
    one = point(1, none=[80, 81, 80.5], k1=[118.0, 121.0, 119.0], k3=[119.0, 120.0, 121.0])
    eight = point(8, none=[300, 301, 302], k1=[400.0, 410.0, 405.0], k3=[300.0, 310.0, 305.0])
    schedules, (note,) = schedule_of(one, eight)
    assert schedules == []
    assert "1 is best at each of them" in note


def test_a_method_that_never_beats_none_has_none() -> None:
    schedules, (note,) = schedule_of(point(1, none=[80.0], k3=[60.0]), point(8, none=[300.0], k3=[200.0]))
    assert schedules == []
    assert "both of them validly measured at all; there is none" in note


def test_a_concurrency_without_a_valid_baseline_has_no_curve() -> None:
    bad = operating_point(
        candidate("none", [80.0], 4, objection="INVALID: queueing"), candidate("mtp k3", [90.0], 4)
    )
    assert curves([CURVE[0], bad], {}) == []


def test_a_baseline_that_breaks_a_limit_is_no_step_of_the_schedule() -> None:
    """At concurrency 8 no drafting would be fastest, but keeps one user waiting longer than allowed."""
    one = point(1, none=[80.0], k1=[100.0], k3=[120.0])
    eight = operating_point(
        candidate("none", [900.0], 8, tpot_median_s=0.09),
        candidate("mtp k1", [800.0], 8, tpot_median_s=0.03),
        candidate("mtp k3", [500.0], 8, tpot_median_s=0.03),
    )
    one = operating_point(*(replace(c, figures={**c.figures, "tpot_median_s": 0.01}) for c in one.candidates))
    assert curves([one, eight], {})[0].best == {1: 3, 8: 0}
    assert curves([one, eight], {"tpot_s": 0.05})[0].best == {1: 3, 8: 1}


def test_scenarios_share_a_schedule() -> None:
    """At concurrency 8 one scenario gains more from k 3 than the other loses."""
    points = (
        point(1, "chat", none=[80.0], k1=[100.0], k3=[120.0]),
        point(8, "chat", none=[300.0], k1=[330.0], k3=[300.0]),
        point(8, "code", none=[300.0], k1=[330.0], k3=[450.0]),
    )
    (curve,) = curves(points, {})
    assert curve.best == {1: 3, 8: 3}
    assert curve.scenarios == ("chat", "code")


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (EngineFacts("sglang", "0.5", 1, 48), "sglang has no schedule"),
        (EngineFacts("vllm", "0.19.1", 1, 256), "0.19.1 was not seen to know"),
        (EngineFacts("vllm", "0.27.1", 2, 256), "data-parallel-size above 1"),
    ],
)
def test_engines_that_take_no_schedule_are_named(facts, words) -> None:
    schedules, (note,) = schedule_of(*CURVE, facts=facts)
    assert schedules == []
    assert words in note


def test_a_release_that_was_not_looked_at_is_said() -> None:
    schedules, (note,) = schedule_of(*CURVE, facts=EngineFacts("vllm", None, 1, 256))
    assert len(schedules) == 1
    assert "unknown version was not checked" in note


@given(
    st.dictionaries(st.integers(1, 300), st.integers(0, 8), min_size=1, max_size=8),
    st.integers(1, 300),
)
def test_ranges_cover_every_batch_size_once_and_measured_ones_have_their_k(best, slots) -> None:
    parts = ranges(best, slots)
    assert parts[0][0] == 1
    assert parts[-1][1] == slots
    for (_, last, k), (first, _, following) in pairwise(parts):
        assert first == last + 1
        assert k != following
    for concurrency, k in best.items():
        if concurrency <= slots:
            assert next(found for first, last, found in parts if first <= concurrency <= last) == k
