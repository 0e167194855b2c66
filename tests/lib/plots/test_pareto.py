"""The Pareto front, against its definition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scripts.lib.plots.pareto import draw, front
from scripts.lib.plots.servers import with_devices
from tests.evidence_factory import cell
from tests.results_factory import measured, sweep, tables

POINTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12)


@given(POINTS)
def test_the_front_is_what_no_point_beats(points: list[tuple[int, int]]) -> None:
    beaten = {(x, y) for x, y in points for a, b in points if (a >= x and b > y) or (a > x and b >= y)}
    assert set(front(points)) == set(points) - beaten


def test_the_front_holds_trusted_figures_only() -> None:
    fast = cell("suffix", 8, 1)
    records = [*sweep(concurrencies=(1, 2)), *(measured(fast, completed=1, failed=7) for _ in "1")]
    values = draw(tables(records)[1]).to_dict()["data"]["values"]
    best = {(row["x"], row["y"]) for row in values if row["kind"] == "front"}
    untrusted = {
        (row["x"], row["y"]) for row in values if row["kind"] == "point" and row["series"] == "suffix k8"
    }
    assert untrusted
    assert best
    assert not best & untrusted


def test_throughput_is_divided_by_the_devices_of_the_server() -> None:
    points = tables(sweep(concurrencies=(4,)))[1]
    one, two = (
        [
            row["y"]
            for row in draw(with_devices(points, count)).to_dict()["data"]["values"]
            if row["kind"] == "point"
        ]
        for count in (lambda server: 1, lambda server: 2)
    )
    assert one
    assert two == [value / 2 for value in one]
