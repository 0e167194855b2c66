"""The rule k-schedule: a schedule of k that the engine would refuse is refused before it starts."""

from __future__ import annotations

import pytest

from tests.lib.test_feasibility import says, server_finding
from tests.planning import engine

KEY = "num_speculative_tokens_per_batch_size"


def found(schedule: object, k: int = 3, **changes: object):
    return server_finding("k-schedule", "mtp", k, speculative_config={KEY: schedule}, **changes)


@pytest.mark.parametrize(
    "schedule", [[[1, 2, 3], [3, 256, 1]], [[1, 4, 3]], [[5, 8, 0], [1, 2, 3]], [[1, 1, 2], [64, 128, 1]]]
)
def test_a_schedule_that_the_engine_takes_is_no_finding(schedule) -> None:
    assert found(schedule, build=engine(version="0.27.1")) is None


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ({"1-16": 3}, "is no list of ranges"),
        ([], "is no list of ranges"),
        ([[1, 2]], "no [first, last, k]"),
        ([[1, 2.5, 1]], "no [first, last, k]"),
        ([[1, True, 1]], "no [first, last, k]"),
        ([[0, 2, 1]], "first must be at least 1"),
        ([[3, 2, 1]], "last not before it"),
        ([[1, 2, -1]], "k not below 0"),
        ([[2, 8, 1]], "does not begin with 1"),
        ([[1, 4, 3], [4, 8, 1]], "overlap"),
    ],
)
def test_one_that_it_refuses_is_infeasible(schedule, words) -> None:
    assert says(
        found(schedule, build=engine(version="0.27.1")), "infeasible", words, "[[1, 2, 4], [3, 256, 1]]"
    )


def test_what_the_engine_would_ignore_is_a_warning() -> None:
    made = engine(version="0.27.1")
    assert says(found([[1, 8, 5]], build=made), "warning", "k 5", "(3)")
    assert says(found([[1, 8, 3]], build=made, flags={"data-parallel-size": 2}), "warning", "switched off")


def test_an_unknown_release_is_only_warned_of() -> None:
    assert says(found([[2, 8, 1]], build=engine(version=None)), "warning", "unknown version")
    assert found([[1, 8, 1]], build=engine(version=None)) is None
