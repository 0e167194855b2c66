"""Which servers to run for a mix of traffic: a mixed-integer program, solved by CBC through pulp.

    sets       options s (a server configuration), traffic t with its share w[t] of all requests (sum 1)
    data       r[s,t]  requests/s that one server s completes while it serves t alone at t's concurrency
               g[s]    devices that one server s occupies;  D[h] devices of hardware h;  N configurations at most
    variables  y[s] in {0,1}  s is used;      n[s] integer >= 0  servers of s
               x[s,t] >= 0    servers' worth of time that s gives to t;      rate >= 0  requests/s of the whole mix
    limits     sum_t x[s,t] <= n[s] <= y[s] * most[s]     sum_s of h g[s] n[s] <= D[h]     sum_s y[s] <= N
               sum_s r[s,t] x[s,t] >= w[t] * rate          for every t
    objective  without a wanted rate: the highest rate. With one: the fewest devices that reach it.
               Then the simplest of the plans within `tolerance` of that (fewest configurations, then smallest k), and
               among those the highest rate, on no more devices than it takes.

One configuration alone needs no solver (_best_single). A solve may end within a quarter of `tolerance` of the best (at the best
without a tolerance), or after some seconds with what it has: Fleet.proven says whether the first objective was settled.

Assumption: a server divides its time between kinds of traffic; what it does while serving them mixed was not measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pulp

from scripts.lib.cell import Server
from scripts.lib.recommend.wishes import Traffic

_LIMIT_S = 5
"""Of wall time for each solve: thousands of measured configurations that beat each other here and there can take minutes."""
_SLACK = 1e-6
"""Relative room for the solver's rounding where a stage holds on to what the one before found."""


@dataclass(frozen=True)
class Option:
    """One server configuration. `rates`: requests/s of one server by kind of traffic; what is absent it must not serve."""

    server: Server
    devices: int
    rates: Mapping[Traffic, float]


@dataclass(frozen=True)
class Budget:
    """`devices` by hardware name. `requests_per_s` is the wanted rate, None for as much as possible."""

    devices: Mapping[str, int]
    configurations: int
    requests_per_s: float | None = None
    tolerance: float = 0.0


@dataclass(frozen=True)
class Route:
    """`share` of the requests of `traffic` (0, 1] that go to `server`."""

    traffic: Traffic
    server: Server
    share: float


@dataclass(frozen=True)
class Fleet:
    """`servers`: how many of each configuration. `requests_per_s` is what they can take of the mix. `proven`: nothing better
    is possible, but for the tolerance."""

    servers: Mapping[Server, int]
    routes: tuple[Route, ...]
    requests_per_s: float
    devices: int
    proven: bool = True


@dataclass(frozen=True)
class _Stage:
    """What a solve holds on to from those before it."""

    rate_at_least: float | None = None
    devices_at_most: int | None = None
    only: frozenset[Server] | None = None


class SolverError(RuntimeError):
    """The solver ended without an answer; the message has its status."""


def best_fleet(options: Sequence[Option], traffic: Sequence[Traffic], budget: Budget) -> Fleet | None:
    """The plan described above, or None where no plan serves all traffic within the budget.

    Raises SolverError when the solver fails.
    """
    best = reach(options, traffic, budget)
    if best is None or budget.configurations == 1:
        return best
    options = _usable(options, budget)
    if budget.requests_per_s is None:
        stage = _Stage(rate_at_least=best.requests_per_s * (1 - budget.tolerance - _SLACK))
    else:
        stage = _Stage(budget.requests_per_s * (1 - _SLACK), devices_at_most=best.devices)
    simplest = _solve(options, traffic, budget, "simplicity", stage) or best
    kept = replace(stage, only=frozenset(simplest.servers))
    fastest = _solve(options, traffic, budget, "rate", kept) or simplest
    # Without a wanted rate nothing has kept idle devices out so far.
    lean = replace(kept, rate_at_least=fastest.requests_per_s * (1 - _SLACK))
    leanest = _solve(options, traffic, budget, "devices", lean) or fastest
    return replace(leanest, requests_per_s=fastest.requests_per_s, proven=best.proven)


def reach(options: Sequence[Option], traffic: Sequence[Traffic], budget: Budget) -> Fleet | None:
    """The first objective alone: the highest rate, or the fewest devices for the wanted one. As best_fleet."""
    if budget.configurations == 1:
        return _best_single(options, traffic, budget)
    options = _usable(options, budget)
    if budget.requests_per_s is not None:
        wanted = _Stage(rate_at_least=budget.requests_per_s * (1 - _SLACK))
        return _solve(options, traffic, budget, "devices", wanted)
    best = _solve(options, traffic, budget, "rate", _Stage())
    return best if best and best.requests_per_s > 0 else None


def _best_single(options: Sequence[Option], traffic: Sequence[Traffic], budget: Budget) -> Fleet | None:
    """The same for one configuration, which needs no program: n servers of it reach n / sum_t w[t] / r[s,t]."""
    able: list[tuple[Option, int, float]] = []
    for option in options:
        if all(option.rates.get(kind) for kind in traffic):
            busy_s = sum(kind.share / option.rates[kind] for kind in traffic)
            most = budget.devices.get(option.server.hardware, 0) // option.devices
            wanted = budget.requests_per_s
            count = most if wanted is None else math.ceil(wanted * busy_s * (1 - _SLACK))
            if 1 <= count <= most:
                able.append((option, count, count / busy_s))
    if not able:
        return None
    if budget.requests_per_s is None:
        enough = max(rate for *_, rate in able) * (1 - budget.tolerance)
        able = [plan for plan in able if plan[2] >= enough]
    else:
        fewest = min(option.devices * count for option, count, _ in able)
        able = [plan for plan in able if plan[0].devices * plan[1] == fewest]
    option, count, rate = min(able, key=lambda plan: (plan[0].server.k, -plan[2], plan[0].server))
    routes = tuple(Route(kind, option.server, 1.0) for kind in traffic)
    return Fleet({option.server: count}, routes, rate, option.devices * count)


def feasible(options: Sequence[Option], traffic: Sequence[Traffic], budget: Budget) -> bool:
    """Whether there is any plan; sooner known than the best one. Raises SolverError as best_fleet does."""
    if budget.configurations == 1:
        return _best_single(options, traffic, budget) is not None
    if budget.requests_per_s is None:
        served = [kind for kind in traffic if any(o.rates.get(kind) for o in _usable(options, budget))]
        wanted = _Stage(rate_at_least=_least_rate(options, traffic)) if len(served) == len(traffic) else None
    else:
        wanted = _Stage(rate_at_least=budget.requests_per_s * (1 - _SLACK))
    return wanted is not None and _solve(_usable(options, budget), traffic, budget, "any", wanted) is not None


def _least_rate(options: Sequence[Option], traffic: Sequence[Traffic]) -> float:
    """A rate that every plan that serves all traffic reaches: one server divides its time among everything."""
    slowest = (min(o.rates[kind] for o in options if o.rates.get(kind)) / kind.share for kind in traffic)
    return min(slowest) / (len(traffic) + 1)


def _usable(options: Sequence[Option], budget: Budget) -> list[Option]:
    return _undominated([o for o in options if o.rates and budget.devices.get(o.server.hardware, 0)])


def _undominated(options: Sequence[Option]) -> list[Option]:
    """Without those that another one equals or beats in everything a plan looks at: most of a large sweep."""
    kept: list[Option] = []
    for option in sorted(options, key=lambda o: (o.devices, o.server.k, -sum(o.rates.values()), o.server)):
        if not any(_beats(other, option) for other in kept):
            kept.append(option)
    return kept


def _beats(other: Option, option: Option) -> bool:
    same = other.server.hardware == option.server.hardware
    cheaper = other.devices <= option.devices and other.server.k <= option.server.k
    return same and cheaper and all(other.rates.get(kind, 0) >= rate for kind, rate in option.rates.items())


def _solve(
    options: Sequence[Option], traffic: Sequence[Traffic], budget: Budget, goal: str, stage: _Stage
) -> Fleet | None:
    if stage.only is not None:
        options = [option for option in options if option.server in stage.only]
    program = pulp.LpProblem("fleet", pulp.LpMinimize)
    rate = program.add_variable("rate", lowBound=stage.rate_at_least or 0)
    used = [program.add_variable(f"y{s}", cat="Binary") for s in range(len(options))]
    count = [program.add_variable(f"n{s}", lowBound=0, cat="Integer") for s in range(len(options))]
    time = {
        (s, t): program.add_variable(f"x{s}_{t}", lowBound=0)
        for s, option in enumerate(options)
        for t, kind in enumerate(traffic)
        if option.rates.get(kind)
    }
    devices = pulp.lpSum(option.devices * count[s] for s, option in enumerate(options))
    program += {
        "rate": -rate,
        "devices": devices,
        "simplicity": pulp.lpSum(w * y for w, y in zip(_burden(options, budget), used, strict=True)),
        "any": pulp.lpSum([]),
    }[goal]
    for s, option in enumerate(options):
        program += pulp.lpSum(time[s, t] for t in range(len(traffic)) if (s, t) in time) <= count[s]
        program += count[s] <= used[s] * (budget.devices[option.server.hardware] // option.devices)
    for t, kind in enumerate(traffic):
        served = pulp.lpSum(
            options[s].rates[kind] * time[s, t] for s in range(len(options)) if (s, t) in time
        )
        program += served >= kind.share * rate
    for hardware, most in budget.devices.items():
        own = [s for s, option in enumerate(options) if option.server.hardware == hardware]
        program += pulp.lpSum(options[s].devices * count[s] for s in own) <= most
    program += pulp.lpSum(used) <= budget.configurations
    if stage.devices_at_most is not None:
        program += devices <= stage.devices_at_most
    solver = pulp.PULP_CBC_CMD(
        msg=False, gapRel=budget.tolerance / 4, timeLimit=_LIMIT_S, timeMode="elapsed", threads=1
    )
    status = pulp.LpStatus[program.solve(solver)]
    if status == "Infeasible":
        return None
    if status != "Optimal":
        raise SolverError(f"the solver found no plan within {_LIMIT_S} s ({status})")
    found = _fleet(options, traffic, [round(n.value() or 0) for n in count], time, rate.value())
    return replace(found, proven=program.sol_status == pulp.LpSolutionOptimal)


def _burden(options: Sequence[Option], budget: Budget) -> list[int]:
    """Weights under which one configuration more outweighs the k of all that may be used."""
    most = max((option.server.k for option in options), default=0)
    return [1 + most * min(budget.configurations, len(options)) + option.server.k for option in options]


def _fleet(
    options: Sequence[Option],
    traffic: Sequence[Traffic],
    counts: Sequence[int],
    time: Mapping[tuple[int, int], pulp.LpVariable],
    rate: float,
) -> Fleet:
    servers = {option.server: n for option, n in zip(options, counts, strict=True) if n}
    routes = []
    for t, kind in enumerate(traffic):
        served = {
            s: options[s].rates[kind] * (time[s, t].value() or 0)
            for s in range(len(options))
            if (s, t) in time
        }
        total = sum(served.values())
        routes += [
            Route(kind, options[s].server, amount / total)
            for s, amount in served.items()
            if amount > _SLACK * total > 0
        ]
    devices = sum(option.devices * n for option, n in zip(options, counts, strict=True))
    return Fleet(servers, tuple(routes), float(rate), devices)
