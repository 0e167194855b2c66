"""The registry: every entry complete, headers with units, nulls and zeros told apart."""

from __future__ import annotations

import pytest

from scripts.lib import metrics
from scripts.lib.metrics import METRICS


@pytest.mark.parametrize("metric", METRICS.values(), ids=list(METRICS))
def test_entry_is_complete(metric: metrics.Metric) -> None:
    assert "" not in (metric.label, metric.formula, metric.subject)
    assert metric.better in (metrics.HIGHER, metrics.LOWER, metrics.NEUTRAL)
    assert metric.kind in (metrics.INTEGER, metrics.NUMBER, metrics.NUMBERS)


@pytest.mark.parametrize(
    ("suffix", "unit"), [("_s", "s"), ("_gib", "GiB"), ("_tps", "tok/s"), ("_tokens", "tokens")]
)
def test_units_in_names_agree_with_the_registry(suffix: str, unit: str) -> None:
    named = [metric for name, metric in METRICS.items() if name.endswith(suffix)]
    assert named
    assert {metric.unit for metric in named} == {unit}


def test_every_defined_metric_is_registered() -> None:
    defined = {
        "per_request_tps",
        "aggregate_tps",
        "tokens_per_request",
        "wall_s",
        "requests",
        "completed",
        "failed",
        "acceptance_length",
        "acceptance_rate",
        "acceptance_per_position",
        "kv_cache_tokens",
        "kv_available_gib",
        "max_concurrency",
        "weights_gib",
        "speedup",
    } | {f"{stem}_{way}_s" for stem in ("ttft", "tpot") for way in ("mean", "median", "p90", "p99")}
    assert defined <= set(METRICS)


def test_inter_token_latency_is_not_offered() -> None:
    # Under speculation a chunk carries several tokens: gaps between chunks are not inter-token latency (F19).
    assert not [name for name in METRICS if "itl" in name or "inter_token" in name]


def test_headers_carry_units() -> None:
    assert METRICS["kv_cache_tokens"].header == "KV cache (tokens)"
    assert METRICS["kv_cache_tokens"].column == "KV (tokens)"
    assert METRICS["speedup"].header == "speedup vs none (x)"


def test_text_tells_zero_from_absent() -> None:
    assert METRICS["aggregate_tps"].text(0.0) == "0.0"
    assert METRICS["aggregate_tps"].text(None) == metrics.ABSENT
    assert METRICS["acceptance_per_position"].text([0.9, 0.0]) == "0.90 0.00"
    assert METRICS["acceptance_per_position"].text([]) == metrics.ABSENT


def test_text_separates_thousands() -> None:
    assert METRICS["kv_cache_tokens"].text(23338944) == "23,338,944"


def test_headline_is_one_user_at_concurrency_1_and_the_server_above() -> None:
    assert [metrics.headline(c) for c in (1, 2, 8)] == ["per_request_tps", "aggregate_tps", "aggregate_tps"]
