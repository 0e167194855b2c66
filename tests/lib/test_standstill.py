"""Standstills of an engine are found, and the pauses of a slow one are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.lib.evidence import Evidence, Request, read_evidence
from scripts.lib.standstill import standstills
from tests import request_factory


@pytest.fixture(scope="module")
def real(h200_store: Path) -> dict[str, Evidence]:
    """The evidence of tests/data/h200 by folder."""
    manifests = h200_store.rglob("manifest.json")
    return {str(path.parent.relative_to(h200_store)): read_evidence(path.parent) for path in manifests}


def test_of_the_real_runs_those_stood_still_in_which_the_engine_hung(real: dict[str, Evidence]) -> None:
    """vLLM 0.26 dflash on an H200: steps of 18 to 45 s, also while new requests of 66 tokens each waited."""
    found = {path: standstills(evidence.measured) for path, evidence in real.items()}
    assert len(found) > 20
    assert None not in found.values()
    stood = {path: [round(length_s, 1) for length_s in lengths] for path, lengths in found.items() if lengths}
    at = "h200/vllm-0.26.0/nemo/dflash/k{}/len4096/forced-256/c8/r1/{}"
    assert stood == {
        at.format(3, "4d8616ecd4c96ef3"): [45.4, 45.4],
        at.format(3, "4d8616ecd4c96ef3.attempt-1"): [45.7, 45.7, 43.2, 34.9, 34.9],
        at.format(7, "efd5fb3d655a8b28"): [18.7, 18.7, 18.8],
    }


def answer(*chunk_s: float, start_s: float = 0.0, **changes: Any) -> Request:
    """A request whose chunks came then."""
    times = {"first_token_s": chunk_s[0] if chunk_s else None, "end_s": chunk_s[-1] if chunk_s else 1.0}
    return request_factory.request(start_s=start_s, chunk_s=chunk_s, **(times | changes))


def steps(first_s: float, count: int, step_s: float = 0.01) -> list[float]:
    return [first_s + step_s * number for number in range(count)]


def stops(step_s: float, pause_s: float) -> Request:
    """Twenty steps, then a pause, then twenty steps."""
    return answer(*steps(1, 20, step_s), *steps(1 + 19 * step_s + pause_s, 20, step_s))


@pytest.mark.parametrize(
    ("step_s", "pause_s", "found"),
    [(0.01, 45.0, [45.0]), (0.01, 0.4, []), (0.01, 0.6, [0.6]), (0.5, 9.0, []), (0.5, 11.0, [11.0])],
    ids=["fast engine", "half a second at least", "just above", "slow engine", "twenty of its steps"],
)
def test_a_pause_counts_by_the_engines_own_pace(step_s: float, pause_s: float, found: list[float]) -> None:
    assert standstills([stops(step_s, pause_s)]) == pytest.approx(found)


def test_each_standstill_is_told() -> None:
    answers = [answer(*steps(1, 20), *steps(5, 20), *steps(10, 20)), answer(*steps(1, 15), 12)]
    assert standstills(answers) == pytest.approx([3.81, 4.81, 1.81])


def test_while_others_get_tokens_the_engine_runs() -> None:
    # One lost its place, and its tokens came late; the other one's did not.
    assert standstills([stops(0.01, 1.0), answer(*steps(1, 150))]) == []


def test_without_anything_to_generate_nothing_stands_still() -> None:
    # Turns of one conversation: the second begins, and has its first token, long after the first ended.
    assert standstills([answer(*steps(0.1, 20)), answer(*steps(60, 20), start_s=30)]) == []


@pytest.mark.parametrize(("tokens", "found"), [(66, [3.0]), (110, []), (8000, []), (None, [])])
def test_a_prefill_may_hold_up_all_others_for_some_steps_per_token(tokens: int | None, found: list) -> None:
    long = answer(*steps(4.3, 9), start_s=1.2, prompt_tokens=tokens)
    assert standstills([answer(*steps(1, 20), *steps(4.19, 30)), long]) == pytest.approx(found)


def test_a_request_that_failed_before_its_first_token_waited_until_then() -> None:
    lost = answer(start_s=1.0, end_s=2.0, error={"type": "timeout"}, prompt_tokens=None)
    assert standstills([stops(0.01, 5.0), lost]) == []
    assert standstills([stops(0.01, 5.0), answer(start_s=0.1, end_s=0.5, prompt_tokens=None)]) == [
        pytest.approx(5.0)
    ]


def test_after_its_last_chunk_a_request_that_failed_proves_nothing() -> None:
    lost = answer(*steps(1, 20), end_s=90.0, finish_reason=None, error={"type": "timeout"})
    assert standstills([lost, answer(*steps(80, 20), start_s=79.9)]) == []


def test_chunks_that_something_on_the_way_collects() -> None:
    packets = [at_s + n * 1e-5 for at_s in steps(1, 20, 0.8) for n in range(50)]
    assert standstills([answer(*packets)]) == []


@pytest.mark.parametrize(
    "measured",
    [[], [answer(1.0)], [answer(1.0), answer(40.0)], [request_factory.request()], [answer()]],
    ids=["no request", "one chunk", "each in one chunk", "no times of chunks", "no token"],
)
def test_what_does_not_tell(measured: list[Request]) -> None:
    assert standstills(measured) is None


def test_one_answer_without_times_makes_all_unknown() -> None:
    assert standstills([stops(0.01, 45.0), request_factory.request(1)]) is None


PACES = st.lists(st.floats(0.5, 2.0), min_size=20, max_size=60)


@given(st.lists(PACES, min_size=1, max_size=6), st.floats(0.002, 2.0))
def test_no_engine_of_a_steady_pace_stands_still(paces: list[list[float]], step_s: float) -> None:
    answers = []
    for number, pace in enumerate(paces):
        start_s = 3.0 * number
        at_s = [start_s + 0.5]
        for factor in pace:
            at_s.append(at_s[-1] + factor * step_s)
        answers.append(answer(*at_s, start_s=start_s))
    assert standstills(answers) == []


@given(st.integers(1, 8), st.floats(0.002, 0.5), st.floats(11, 100))
def test_a_pause_of_all_is_found_whoever_runs(concurrency: int, step_s: float, pause_s: float) -> None:
    answers = []
    for worker in range(concurrency):
        before = steps(1 + 0.1 * step_s * worker, 30, step_s)
        answers.append(answer(*before, *steps(before[-1] + pause_s, 30, step_s)))
    (found,) = standstills(answers)
    assert found == pytest.approx(pause_s, abs=step_s)
