"""The plan for a mix of traffic: by hand on small cases, and against brute force on random ones."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from scripts.lib.cell import Server
from scripts.lib.recommend.fleet import Budget, Option, best_fleet
from scripts.lib.recommend.wishes import Traffic

CHAT, CODE = Traffic("chat", 8, 0.5), Traffic("code", 1, 0.5)


def server(k: int, hardware: str = "box", method: str = "mtp") -> Server:
    return Server(hardware, "vllm", "toy", method if k else "none", k, 1024)


def option(k: int, rates: dict[Traffic, float], devices: int = 1, hardware: str = "box") -> Option:
    return Option(server(k, hardware), devices, rates)


def test_one_server_shares_its_time_between_kinds_of_traffic() -> None:
    """Half the requests take 1/4 s, half 1/12 s of the server: 1 / (0.5 / 4 + 0.5 / 12) = 6 requests/s."""
    fleet = best_fleet([option(3, {CHAT: 12, CODE: 4})], [CHAT, CODE], Budget({"box": 1}, 1))
    assert fleet.requests_per_s == pytest.approx(6)
    assert fleet.servers == {server(3): 1}
    assert {(route.traffic, route.share) for route in fleet.routes} == {(CHAT, 1), (CODE, 1)}


def test_two_configurations_where_two_are_allowed_and_each_gets_what_it_does_best() -> None:
    options = [option(0, {CHAT: 12, CODE: 2}), option(3, {CHAT: 4, CODE: 12})]
    fleet = best_fleet(options, [CHAT, CODE], Budget({"box": 2}, 2))
    assert fleet.requests_per_s == pytest.approx(24)
    assert {(route.traffic, route.server.k) for route in fleet.routes} == {(CHAT, 0), (CODE, 3)}
    alone = best_fleet(options, [CHAT, CODE], Budget({"box": 2}, 1))
    assert len(alone.servers) == 1
    assert alone.requests_per_s == pytest.approx(12)


def test_a_wanted_rate_takes_the_fewest_devices() -> None:
    fleet = best_fleet(
        [option(3, {CODE: 4})], [Traffic("code", 1, 1.0)], Budget({"box": 9}, 1, requests_per_s=9)
    )
    assert fleet is None, "the option serves another kind of traffic"
    code = Traffic("code", 1, 1.0)
    fleet = best_fleet([option(3, {code: 4})], [code], Budget({"box": 9}, 1, requests_per_s=9))
    assert fleet.devices == 3
    assert fleet.requests_per_s == pytest.approx(12), "what the three can do"


def test_devices_of_a_server_count() -> None:
    code = Traffic("code", 1, 1.0)
    options = [option(0, {code: 10}, devices=1), option(3, {code: 15}, devices=2)]
    fleet = best_fleet(options, [code], Budget({"box": 2}, 1))
    assert fleet.servers == {server(0): 2}


def test_a_gain_within_the_tolerance_does_not_buy_complexity() -> None:
    code = Traffic("code", 1, 1.0)
    options = [option(1, {code: 10}), option(5, {code: 10.1})]
    assert best_fleet(options, [code], Budget({"box": 1}, 1, tolerance=0.02)).servers == {server(1): 1}
    assert best_fleet(options, [code], Budget({"box": 1}, 1)).servers == {server(5): 1}


def test_an_idle_device_is_not_planned() -> None:
    """Code at 1 request/s a server binds; more servers for chat would add nothing beyond the budget of hardware."""
    chat, code = Traffic("chat", 8, 0.5), Traffic("code", 1, 0.5)
    options = [option(0, {chat: 1000}, hardware="big"), option(0, {code: 1}, hardware="small")]
    fleet = best_fleet(options, [chat, code], Budget({"big": 4, "small": 1}, 2))
    assert fleet.servers == {server(0, "big"): 1, server(0, "small"): 1}
    assert fleet.requests_per_s == pytest.approx(2)


def test_nothing_serves_the_traffic() -> None:
    assert best_fleet([], [CODE], Budget({"box": 1}, 1)) is None
    assert best_fleet([option(0, {CHAT: 1})], [CHAT, CODE], Budget({"box": 1}, 1)) is None


def test_one_configuration_and_the_program_agree() -> None:
    """With two allowed and one that beats the others everywhere, the program plans what the formula does for one."""
    options = [
        option(0, {CHAT: 12, CODE: 4}),
        option(3, {CHAT: 13, CODE: 6}, devices=2),
        option(1, {CHAT: 12, CODE: 3.9}),
    ]
    for wanted in (None, 20.0):
        alone, free = (best_fleet(options, [CHAT, CODE], Budget({"box": 8}, n, wanted)) for n in (1, 2))
        assert (alone.servers, alone.devices) == (free.servers, free.devices)
        assert alone.requests_per_s == pytest.approx(free.requests_per_s)


rates = st.one_of(st.just(0.0), st.integers(1, 40).map(float))
kinds = [Traffic("a", 1, 0.2), Traffic("b", 4, 0.3), Traffic("c", 8, 0.5)]


@st.composite
def cases(draw):
    traffic = kinds[: draw(st.integers(1, 3))]
    total = sum(kind.share for kind in traffic)
    traffic = [Traffic(kind.scenario, kind.concurrency, kind.share / total) for kind in traffic]
    count = draw(st.integers(1, 3))
    options = []
    for k in range(count):
        by_kind = {kind: rate for kind in traffic if (rate := draw(rates))}
        options.append(option(k, by_kind, draw(st.integers(1, 2)), draw(st.sampled_from(["box", "rack"]))))
    budget = Budget(
        {"box": draw(st.integers(1, 3)), "rack": draw(st.integers(0, 2))}, draw(st.integers(1, 3))
    )
    return options, traffic, budget


def fleets(options, budget):
    """Every allocation of servers that the budget allows."""
    most = [budget.devices[option.server.hardware] // option.devices for option in options]
    for counts in product(*(range(n + 1) for n in most)):
        used = dict.fromkeys(budget.devices, 0)
        for option, count in zip(options, counts, strict=True):
            used[option.server.hardware] += option.devices * count
        if sum(map(bool, counts)) <= budget.configurations and all(
            used[h] <= budget.devices[h] for h in used
        ):
            yield counts


def most_requests(counts, options, traffic) -> float:
    """The rate an allocation reaches, by another solver: x[s,t] are servers' shares of time, the last variable is the rate."""
    pairs = [
        (s, t) for s in range(len(options)) for t in range(len(traffic)) if options[s].rates.get(traffic[t])
    ]
    time = [[float(s == own) for s, _ in pairs] + [0.0] for own in range(len(options))]
    served = [
        [-(options[s].rates[traffic[t]] if t == kind else 0.0) for s, t in pairs] + [traffic[kind].share]
        for kind in range(len(traffic))
    ]
    goal = [0.0] * len(pairs) + [-1.0]
    return -linprog(goal, time + served, [*counts] + [0.0] * len(traffic)).fun


@settings(max_examples=25, deadline=None)
@given(cases())
def test_the_solver_finds_what_brute_force_finds(case) -> None:
    options, traffic, budget = case
    best = max(most_requests(counts, options, traffic) for counts in fleets(options, budget))
    fleet = best_fleet(options, traffic, budget)
    assert (fleet is None) == (best <= 1e-9)
    if fleet is None:
        return
    assert fleet.requests_per_s == pytest.approx(best, rel=1e-4)
    assert len(fleet.servers) <= budget.configurations
    for kind in traffic:
        assert sum(route.share for route in fleet.routes if route.traffic == kind) == pytest.approx(1)


@settings(max_examples=20, deadline=None)
@given(cases(), st.integers(1, 60))
def test_the_fewest_devices_are_those_of_brute_force(case, wanted) -> None:
    options, traffic, budget = case
    budget = Budget(budget.devices, budget.configurations, requests_per_s=float(wanted))
    enough = [
        sum(option.devices * count for option, count in zip(options, counts, strict=True))
        for counts in fleets(options, budget)
        if most_requests(counts, options, traffic) >= wanted * (1 - 1e-7)
    ]
    fleet = best_fleet(options, traffic, budget)
    assert (fleet and fleet.devices) == (min(enough) if enough else None)
