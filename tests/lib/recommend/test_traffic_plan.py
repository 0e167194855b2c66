"""Plans for a model's traffic from its operating points, and what stands in the way of one."""

from __future__ import annotations

import pytest

from scripts.lib.recommend.traffic_plan import plan_traffic
from scripts.lib.recommend.wishes import Traffic, read_wishes
from tests.lib.recommend.cases import candidate, operating_point

NO_WISHES = {
    "limits": {},
    "traffic": [],
    "devices": 1,
    "max_configurations": 1,
    "requests_per_s": None,
    "tolerance": 0.02,
    "image": None,
}
ONE = operating_point(
    candidate("none", [100.0], ttft_median_s=0.1), candidate("mtp k3", [200.0], ttft_median_s=0.4)
)
EIGHT = operating_point(
    candidate("none", [800.0], 8, ttft_median_s=0.2), candidate("mtp k3", [600.0], 8, ttft_median_s=0.9)
)
MIX = [{"scenario": "code", "concurrency": 1, "share": 1}, {"scenario": "code", "concurrency": 8, "share": 3}]


def plan(*points, **wishes):
    (made,) = plan_traffic(points, read_wishes(NO_WISHES | wishes), lambda server: 1)
    return made


def test_without_traffic_all_kinds_have_an_equal_share() -> None:
    made = plan(ONE, EIGHT)
    assert made.assumed
    assert [kind.share for kind in made.traffic] == [0.5, 0.5]
    # 100 tokens a request: none does 1 and 8 requests/s, mtp 2 and 6.
    assert [server.method for server in made.fleet.servers] == ["mtp"]
    assert made.fleet.requests_per_s == pytest.approx(1 / (0.5 / 2 + 0.5 / 6))


def test_shares_decide() -> None:
    made = plan(ONE, EIGHT, traffic=[MIX[0] | {"share": 0.02}, MIX[1] | {"share": 0.98}])
    assert [server.method for server in made.fleet.servers] == ["none"]
    assert not made.assumed


def test_shares_are_scaled_to_one() -> None:
    assert read_wishes(NO_WISHES | {"traffic": MIX}).traffic == (
        Traffic("code", 1, 0.25),
        Traffic("code", 8, 0.75),
    )


def test_limits_hold_for_every_kind_of_traffic() -> None:
    made = plan(ONE, EIGHT, limits={"ttft_s": 0.5})
    assert [server.method for server in made.fleet.servers] == ["none"]


def test_short_answers_earn_nothing() -> None:
    """Two methods at the same tokens/s; one happened to answer in half the tokens."""
    point = operating_point(candidate("none", [100.0]), candidate("mtp k1", [100.0], tokens_per_request=50.0))
    (made,) = plan_traffic([point], read_wishes(NO_WISHES), lambda server: 1)
    assert [server.method for server in made.fleet.servers] == ["none"]


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"limits": {"ttft_s": 0.05}}, ["ttft_s (0.05) binds"]),
        ({"limits": {"ttft_s": 0.5, "per_request_tps": 5000}}, ["per_request_tps (5000) binds"]),
        (
            {"requests_per_s": 20.0},
            ["devices (box 1) binds: a plan is possible with", "requests_per_s (20) binds"],
        ),
        (
            {"limits": {"ttft_s": 0.3, "kv_cache_tokens": 1}},
            ["kv_cache_tokens (1) binds"],
        ),
        (
            {"limits": {"ttft_s": 0.05, "tpot_s": 0.001}},
            ["No limit binds alone"],
        ),
    ],
)
def test_infeasible_is_explained_by_the_limit_that_binds(wishes, words) -> None:
    made = plan(ONE, EIGHT, **wishes)
    assert made.fleet is None
    assert len(made.obstacles) == len(words)
    for sentence, expected in zip(made.obstacles, words, strict=True):
        assert expected in sentence


def test_too_few_configurations_are_named() -> None:
    """none alone serves concurrency 8 and mtp alone 1."""
    one = operating_point(candidate("mtp k3", [200.0]))
    eight = operating_point(candidate("none", [800.0], 8))
    made = plan(one, eight, devices=2)
    assert made.obstacles == ("max_configurations (1) binds: a plan is possible with 2.",)
    assert len(plan(one, eight, devices=2, max_configurations=2).fleet.servers) == 2


def test_traffic_that_was_not_measured_validly_is_named() -> None:
    bad = operating_point(candidate("none", [800.0], 8, objection="INVALID: queueing"))
    made = plan(ONE, bad)
    assert made.obstacles == (
        "There is no valid measurement of code at concurrency 8 on hardware that the budget has.",
    )


def test_hardware_that_the_budget_does_not_name_is_not_offered() -> None:
    far = operating_point(candidate("none", [800.0]), hardware="rack")
    made = plan(far, devices={"box": 1})
    assert made.obstacles == (
        "There is no valid measurement of code at concurrency 1 on hardware that the budget has.",
    )
    both = plan(ONE, far, devices={"box": 1}, requests_per_s=30.0)
    assert [words.split(":")[0] for words in both.obstacles] == [
        "devices (box 1) binds",
        "requests_per_s (30) binds",
    ]
