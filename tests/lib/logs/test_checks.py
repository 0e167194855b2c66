"""Judgements that need more than the log."""

from __future__ import annotations

import pytest

from scripts.lib.logs import checks
from scripts.lib.logs.root_cause import failure_of_line
from tests.lib.logs.helpers import parse, vllm

CONFIG = {"speculators_config": {"proposal_methods": [{"speculative_tokens": 3}]}}
DUMP = (
    "Initializing a V1 LLM engine (v0.11.0) with config: model='org/target', speculative_config={}, "
    "max_seq_len=1024"
)


def test_speculator_that_runs_is_fine() -> None:
    active = parse(vllm(DUMP.format("SpeculativeConfig(method='eagle3', model='d', num_spec_tokens=3)")))
    assert checks.speculator_not_active(CONFIG, active) is None


def test_plain_checkpoint_is_fine() -> None:
    assert checks.speculator_not_active({"model_type": "llama"}, parse(vllm(DUMP.format("None")))) is None


def test_log_that_does_not_say_is_no_proof() -> None:
    assert checks.speculator_not_active(CONFIG, parse("nothing\n")) is None


def _stats(running: int, waiting: int, usage: float) -> str:
    return vllm(
        "Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 402.0 tokens/s, "
        f"Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: {usage}%, Prefix cache hit "
        "rate: 0.0%",
        "APIServer pid=1",
    )


def test_scheduler_limit() -> None:
    found = checks.scheduler_limit(parse(_stats(10, 54, 4.1)), asked=64, max_num_batched_tokens=32, k=2)
    assert (found.running, found.asked, found.budget_requests) == (10, 64, 10)
    assert "10 of 64 run" in found.text


@pytest.mark.parametrize(
    ("running", "waiting", "usage"), [(64, 0, 4.1), (64, 3, 4.1), (10, 54, 97.0), (10, 0, 4.1)]
)
def test_not_the_scheduler(running: int, waiting: int, usage: float) -> None:
    assert checks.scheduler_limit(parse(_stats(running, waiting, usage)), asked=64) is None


def test_budget_requests() -> None:
    assert checks.budget_requests(32, 2) == 10
    assert checks.budget_requests(32, 0) == 32


TOO_LOW = failure_of_line("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.")
TOO_HIGH = failure_of_line(
    "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 1.20 GiB"
)


@pytest.mark.parametrize(
    ("tries", "next_try", "words"),
    [
        ([(0.84, TOO_LOW), (0.85, TOO_HIGH)], None, "no feasible fraction in (0.84, 0.85)"),
        ([(0.70, TOO_LOW), (0.90, TOO_HIGH)], 0.8, "try 0.8"),
        ([(0.70, TOO_LOW), (0.90, TOO_HIGH), (0.8, None)], None, "0.8 works"),
        ([(0.70, TOO_LOW)], None, "above 0.7"),
        ([(0.90, TOO_HIGH)], None, "below 0.9"),
        ([], None, "no try failed"),
    ],
)
def test_memory_bracket(tries: list, next_try: float | None, words: str) -> None:
    bracket = checks.memory_bracket(tries)
    assert bracket.next_try == next_try
    assert words in bracket.advice


def test_search_between_opposite_errors_ends() -> None:
    tries, asked = [(0.5, TOO_LOW), (0.95, TOO_HIGH)], 0
    while (bracket := checks.memory_bracket(tries)).next_try is not None:
        tries.append((bracket.next_try, TOO_LOW if bracket.next_try < 0.842 else TOO_HIGH))
        asked += 1
    assert asked < 10
    assert "reduce capture batch" in bracket.advice
