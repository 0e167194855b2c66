"""Start-up phases do not overlap and add up to the whole, or are not told apart."""

from __future__ import annotations

import pytest

from scripts.lib.plots.startup import CAPTURE, COMPILE, INIT, LOAD, REST, WHOLE, phases

NOTHING = dict.fromkeys(
    (
        "startup_ready_s",
        "model_load_s",
        "weights_load_s",
        "drafter_load_s",
        "compile_s",
        "capture_s",
        "init_s",
    )
)


def test_phases_add_up_to_ready() -> None:
    row = NOTHING | {
        "startup_ready_s": 40.0,
        "model_load_s": 8.0,
        "weights_load_s": 5.0,
        "compile_s": 7.0,
        "capture_s": 2.0,
        "init_s": 12.0,
    }
    assert phases(row) == [(LOAD, 8.0), (COMPILE, 7.0), (CAPTURE, 2.0), (INIT, 3.0), (REST, 20.0)]


def test_without_the_loading_time_the_weights_stand_for_it() -> None:
    row = NOTHING | {"startup_ready_s": 10.0, "weights_load_s": 2.0, "drafter_load_s": 1.0}
    assert phases(row) == [(LOAD, 3.0), (REST, 7.0)]


def test_phases_that_are_more_than_the_whole_are_not_told_apart() -> None:
    assert phases(NOTHING | {"startup_ready_s": 10.0, "model_load_s": 8.0, "init_s": 5.0}) == [(WHOLE, 10.0)]


@pytest.mark.parametrize(("ready", "expected"), [(None, []), (12.5, [(WHOLE, 12.5)])])
def test_without_a_log(ready: float | None, expected: list) -> None:
    assert phases(NOTHING | {"startup_ready_s": ready}) == expected
