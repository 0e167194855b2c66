"""Which method wins, when nobody does, and what may not compete."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scripts.lib.recommend.choice import choose
from scripts.lib.statistics import FASTER, compare
from tests.lib.recommend.cases import candidate, operating_point


def test_a_resolved_lead_is_a_clear_winner_with_its_margin() -> None:
    point = operating_point(
        candidate("none", [80, 81, 80]),
        candidate("mtp k3", [110, 111, 112]),
        candidate("dspark k3", [124, 125, 123]),
    )
    choice = choose(point, {})
    assert (choice.verdict, choice.chosen.label, choice.runner_up.label) == (
        "clear winner",
        "dspark k3",
        "mtp k3",
    )
    assert choice.margin.ratio == pytest.approx(124 / 111, rel=0.01)
    assert choice.margin.low > 1


def test_two_drafters_within_their_spread_are_no_clear_winner_and_the_smaller_k_is_taken() -> None:
    """Study C: drafters move by 6% between runs, so 4% between two of them is unresolved."""
    point = operating_point(
        candidate("none", [80, 80.2, 80.1]),
        candidate("mtp k5", [128, 124, 131]),
        candidate("mtp k2", [123, 120, 126]),
    )
    choice = choose(point, {})
    assert choice.verdict == "no clear winner"
    assert choice.chosen.label == "mtp k2"
    assert [tied.label for tied in choice.tied] == ["mtp k5", "mtp k2"]


def test_speculation_that_is_not_shown_to_pay_loses_to_none() -> None:
    point = operating_point(candidate("none", [100, 95, 105]), candidate("ngram k3", [103, 97, 106]))
    choice = choose(point, {})
    assert (choice.verdict, choice.chosen.label) == ("no clear winner", "none")


@pytest.mark.parametrize(
    ("concurrency", "two", "four", "winner", "verdict"),
    [
        (1, [55.4, 56.3, 54.8], [56.1, 55.0, 56.9], "mtp k2", "no clear winner"),
        (8, [288, 281, 295], [199, 204, 200], "mtp k2", "clear winner"),
        (1, [40.1, 40.9, 39.8], [40.7, 39.9, 41.2], "mtp k2", "no clear winner"),
        (8, [150, 149, 151], [210, 214, 209], "mtp k4", "clear winner"),
    ],
)
def test_field_report_6_the_better_k_depends_on_the_concurrency(
    concurrency, two, four, winner, verdict
) -> None:
    point = operating_point(candidate("mtp k2", two, concurrency), candidate("mtp k4", four, concurrency))
    choice = choose(point, {})
    assert (choice.chosen.label, choice.verdict) == (winner, verdict)


def test_field_report_6_the_margin_is_43_percent() -> None:
    point = operating_point(candidate("mtp k2", [288, 281, 295], 8), candidate("mtp k4", [199, 204, 200], 8))
    assert choose(point, {}).margin.ratio == pytest.approx(1.43, abs=0.01)


def test_a_single_run_names_the_leader_and_claims_nothing() -> None:
    choice = choose(operating_point(candidate("none", [20.0]), candidate("mtp k1", [24.0])), {})
    assert (choice.verdict, choice.chosen.label, choice.tied) == ("single run", "mtp k1", (choice.chosen,))
    assert choice.margin.ratio == pytest.approx(1.2)
    assert choice.margin.low is None


def test_equal_single_runs_go_to_the_smaller_k() -> None:
    point = operating_point(
        candidate("mtp k3", [20.0]), candidate("mtp k1", [20.0]), candidate("none", [20.0])
    )
    assert choose(point, {}).chosen.label == "none"


def test_what_is_not_valid_does_not_compete_and_is_named() -> None:
    fast = candidate("ngram k3", [400, 410, 405], objection="INVALID: too_fast: above (k + 1) x none")
    choice = choose(operating_point(candidate("none", [80, 81, 80]), fast), {})
    assert (choice.verdict, choice.chosen.label) == ("only candidate", "none")
    assert choice.excluded == {"ngram k3": "INVALID: too_fast: above (k + 1) x none"}


def test_limits_exclude_with_figure_and_bound() -> None:
    slow = candidate("mtp k3", [120, 121, 120], ttft_median_s=0.9, kv_cache_tokens=50_000)
    fine = candidate("none", [80, 81, 80], ttft_median_s=0.2, kv_cache_tokens=90_000)
    point = operating_point(slow, fine)
    assert choose(point, {"ttft_s": 1.0}).chosen == slow
    choice = choose(point, {"ttft_s": 0.5})
    assert choice.chosen == fine
    assert choice.excluded == {
        "mtp k3": "limit ttft_s: time to first token median 0.900, at most 0.5 s is asked"
    }
    assert choose(point, {"kv_cache_tokens": 60_000}).chosen == fine
    assert choose(point, {"kv_cache_tokens": 50_000}).chosen == slow


def test_an_unknown_figure_keeps_no_limit() -> None:
    choice = choose(operating_point(candidate("none", [80.0], kv_cache_tokens=None)), {"kv_cache_tokens": 1})
    assert (choice.verdict, choice.chosen) == ("no candidate", None)
    assert "KV cache is not known" in choice.excluded["none"]


def test_nothing_measured_is_an_answer() -> None:
    assert choose(operating_point(), {}).verdict == "no candidate"


throughputs = st.lists(st.floats(10, 200), min_size=2, max_size=4)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.integers(0, 8), st.tuples(throughputs, st.booleans()), min_size=1, max_size=6))
def test_the_choice_is_valid_unbeaten_and_the_smallest_of_its_ties(made) -> None:
    point = operating_point(
        *(
            candidate(f"mtp k{k}" if k else "none", values, objection=None if valid else "INVALID: failed")
            for k, (values, valid) in made.items()
        )
    )
    choice = choose(point, {})
    fit = [c for c in point.candidates if c.objection is None]
    assert (choice.chosen is None) == (not fit)
    assert set(choice.excluded) == {c.label for c in point.candidates if c.objection}
    if not fit:
        return
    leader = max(fit, key=lambda c: c.value)
    for other in fit:
        shown_worse = compare(leader.samples, other.samples).verdict == FASTER
        assert (other in choice.tied) != shown_worse or other.value == leader.value
        if other.server.k < choice.chosen.server.k:
            assert shown_worse
    assert (choice.verdict == "clear winner") == (len(choice.tied) == 1 and len(fit) > 1)
