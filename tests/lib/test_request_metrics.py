"""Counts, throughput and latencies of one cell, against values computed by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.lib.evidence import Request
from scripts.lib.metrics import of_subject
from scripts.lib.request_metrics import request_metrics
from tests import request_factory

COUNTS = {"requests", "completed", "failed"}


def request(
    start_s: float = 0.0,
    first_token_s: float | None = 0.1,
    end_s: float | None = 2.1,
    tokens: int | None = 41,
    error: dict | None = None,
    finish_reason: str | None = "length",
) -> Request:
    return request_factory.request(
        start_s=start_s,
        first_token_s=first_token_s,
        end_s=end_s,
        completion_tokens=tokens,
        finish_reason=finish_reason,
        error=error,
    )


FAILED = request(first_token_s=None, end_s=9.0, tokens=None, error={"type": "timeout"}, finish_reason=None)


def test_two_requests_by_hand() -> None:
    # 41 tokens in 2.0 s and 20 in 1.0 s, one after the other: 20.5 and 20 tok/s, 61 tokens in 3.5 s.
    second = request(start_s=2.5, first_token_s=2.7, end_s=3.5, tokens=20)
    values, reasons = request_metrics([request(first_token_s=0.4, end_s=2.0), second], asked=2, concurrency=1)
    assert (values["requests"], values["completed"], values["failed"]) == (2, 2, 0)
    assert values["wall_s"] == pytest.approx(3.5)
    assert values["completion_tokens"] == 61
    assert values["prompt_tokens"] == 140
    assert values["tokens_per_request"] == pytest.approx(30.5)
    assert values["per_request_tps"] == pytest.approx((20.5 + 20) / 2)
    assert values["aggregate_tps"] == pytest.approx(61 / 3.5)
    assert values["ttft_mean_s"] == pytest.approx(0.3)
    assert values["tpot_mean_s"] == pytest.approx((1.6 / 40 + 0.8 / 19) / 2)
    assert reasons["ttft_p99_s"] == "2 samples, 299 needed"


def test_study_a_baseline_at_concurrency_1() -> None:
    # 11853 tokens in 145.77 s, ten requests back to back.
    tokens = [1185] * 7 + [1186] * 3
    step = 145.77 / 10
    requests = [request(i * step, i * step + 0.1, (i + 1) * step, n) for i, n in enumerate(tokens)]
    values, _ = request_metrics(requests, asked=10, concurrency=1)
    assert values["completion_tokens"] == 11853
    assert values["aggregate_tps"] == pytest.approx(81.31, abs=0.005)
    assert values["tokens_per_request"] == pytest.approx(1185.3)
    assert values["per_request_tps"] == pytest.approx(81.31, abs=0.01)


def test_the_end_of_the_closed_loop_is_not_at_full_load() -> None:
    # Two workers, three requests of 2.1 s: the third runs alone.
    third = request(start_s=2.1, first_token_s=2.2, end_s=4.2)
    values, _ = request_metrics([request(), request(), third], asked=3, concurrency=2)
    assert values["full_load_share"] == pytest.approx(0.5)
    # 41 tokens each of the first two; the third's came after.
    assert values["full_load_tps"] == pytest.approx(82 / 2.1)
    assert values["aggregate_tps"] == pytest.approx(123 / 4.2)


def test_too_few_requests_for_the_concurrency_have_no_throughput_at_full_load() -> None:
    values, reasons = request_metrics([request()], asked=1, concurrency=4)
    assert (values["full_load_share"], values["full_load_tps"]) == (0, None)
    assert reasons["full_load_tps"] == "there were never 4 requests under way"


def test_nothing_completed_is_absent_not_zero() -> None:
    # F11: 200 requests asked, none completed.
    values, reasons = request_metrics([FAILED] * 200, asked=200, concurrency=1)
    assert {name: values[name] for name in COUNTS} == {"requests": 200, "completed": 0, "failed": 200}
    others = set(of_subject("requests", "throughput", "latency")) - COUNTS
    assert {name: values[name] for name in others} == dict.fromkeys(others)
    assert set(reasons) == others


def test_no_request_at_all() -> None:
    values, _ = request_metrics([], asked=5, concurrency=1)
    assert (values["completed"], values["failed"], values["wall_s"]) == (0, 5, None)


def test_failed_requests_count_in_the_wall_time_but_not_in_the_tokens() -> None:
    values, _ = request_metrics([request(), request(), FAILED], asked=3, concurrency=1)
    assert (values["completed"], values["failed"]) == (2, 1)
    assert values["completion_tokens"] == 82
    assert values["wall_s"] == pytest.approx(9.0)
    assert values["aggregate_tps"] == pytest.approx(82 / 9.0)
    assert values["per_request_tps"] == pytest.approx(41 / 2.1)
    assert values["ttft_mean_s"] == pytest.approx(0.1)


def test_a_request_without_record_counts_as_failed() -> None:
    values, _ = request_metrics([request()], asked=3, concurrency=1)
    assert (values["requests"], values["completed"], values["failed"]) == (3, 1, 2)


def test_missing_usage_makes_token_metrics_absent_and_keeps_latency() -> None:
    values, reasons = request_metrics([request(), request(tokens=None)], asked=2, concurrency=1)
    for name in ("completion_tokens", "tokens_per_request", "per_request_tps", "aggregate_tps"):
        assert values[name] is None
        assert reasons[name] == "the server sent no token usage for 1 of 2 completed requests"
    assert values["ttft_mean_s"] == pytest.approx(0.1)
    # The one request with usage still has a time per output token.
    assert values["tpot_mean_s"] == pytest.approx(2.0 / 40)


def test_outputs_of_one_token_have_no_tpot() -> None:
    values, reasons = request_metrics([request(tokens=1)] * 3, asked=3, concurrency=1)
    assert values["tpot_mean_s"] is None
    assert "more than one" in reasons["tpot_mean_s"]
    assert values["per_request_tps"] is not None


def test_zero_tokens_are_a_value() -> None:
    values, _ = request_metrics([request(tokens=0, first_token_s=None)], asked=1, concurrency=1)
    assert (values["completion_tokens"], values["aggregate_tps"]) == (0, 0)
    assert values["ttft_mean_s"] is None


def test_percentiles_appear_with_enough_samples() -> None:
    values, reasons = request_metrics([request()] * 29, asked=29, concurrency=1)
    assert values["ttft_p90_s"] == pytest.approx(0.1)
    assert values["ttft_p99_s"] is None
    assert "ttft_p90_s" not in reasons
    values, _ = request_metrics([request()] * 299, asked=299, concurrency=1)
    assert values["ttft_p99_s"] == pytest.approx(0.1)


@given(
    st.lists(
        st.builds(
            request,
            start_s=st.floats(0, 1e4),
            first_token_s=st.none() | st.floats(0, 1e4),
            end_s=st.none() | st.floats(0, 1e4),
            tokens=st.none() | st.integers(0, 10**6),
            error=st.none() | st.just({"type": "x"}),
            finish_reason=st.none() | st.just("stop"),
        ),
        max_size=40,
    ),
    st.integers(0, 40),
)
def test_every_metric_has_a_value_or_a_reason(requests: list[Request], asked: int) -> None:
    values, reasons = request_metrics(requests, asked, 2)
    assert {name for name, value in values.items() if value is None} == set(reasons)
