"""What follows from the outcome of a try: worth another one or not, and what the console says."""

from __future__ import annotations

import pytest

from scripts.lib.client import RequestRecord
from scripts.lib.endpoint import Failure
from scripts.lib.measurement import Measurement, all_failed, window, wrong_length
from scripts.lib.prompt_fit import Fit, ScenarioFit

ERROR = {"type": "http", "message": "EngineDeadError", "status": 500}


def record(phase="measure", error=None, tokens=10, prompt_tokens=100):
    return RequestRecord(
        phase=phase,
        index=0,
        prompt_id="p",
        request_sha256="0",
        worker=0,
        start_s=0.0,
        first_token_s=0.1,
        last_token_s=0.9,
        end_s=1.0,
        prompt_tokens=prompt_tokens,
        completion_tokens=None if error else tokens,
        chunk_s=[],
        chunk_tokens=None,
        finish_reason=None if error else "stop",
        error=error,
        output="",
        token_ids=None,
    )


def outcome(good=0, bad=0, warmup=0):
    records = [record("warmup", ERROR)] * warmup + [record()] * good + [record(error=ERROR)] * bad
    return Measurement(records, window(1.0) | {"wall_s": 2.0})


@pytest.mark.parametrize(
    ("good", "bad", "lossy"), [(10, 0, False), (9, 1, False), (8, 2, True), (0, 0, False)]
)
def test_a_cell_that_lost_over_a_tenth_is_worth_another_try(good, bad, lossy):
    assert outcome(good, bad, warmup=5).lossy is lossy


def test_the_console_is_told_what_came_out():
    assert outcome(4).words == "done, 4 requests in 2.0 s, 20.0 tokens/s"
    assert outcome(3, 1).words == "done, 3 requests, 1 FAILED in 2.0 s, 15.0 tokens/s"
    failure = Failure("resource_run", "no memory is left", "measure", retry=False)
    assert Measurement.nothing(failure).words == "FAILED (resource_run, measure): no memory is left"


def test_nothing_completed_tells_the_first_error():
    failure = all_failed([record(error=ERROR), record(error=ERROR | {"message": "later"})])
    assert failure.cause == "0 of 2 requests completed; the first error: EngineDeadError"
    assert failure.retry
    assert "no request was sent" in all_failed([]).cause


@pytest.mark.parametrize(("prompt_tokens", "fails"), [(1000, False), (1019, False), (1040, True)])
def test_a_length_that_was_not_met_fails_the_cell(prompt_tokens, fails):
    fit = ScenarioFit(1000, "tokenize", {"measure/p": Fit(3, 1000)})
    failure = wrong_length(fit, [record(prompt_tokens=prompt_tokens)])
    assert (failure is not None) is fails
    assert wrong_length(None, [record(prompt_tokens=prompt_tokens)]) is None
