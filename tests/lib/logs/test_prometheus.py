"""Counter differences: engines summed, resets detected, twins ignored."""

from __future__ import annotations

import gzip

import pytest

from scripts.lib.logs.prometheus import difference, parse_metrics
from tests.lib.logs.golden import DATA


def exposition(
    drafts: float, draft_tokens: float, accepted: float, suffix: str = "_total", engine: str = "0"
) -> str:
    """A small /metrics text."""
    labels = f'{{engine="{engine}",model_name="m"}}'
    return (
        "# HELP vllm:spec_decode_num_drafts Number of drafts.\n# TYPE vllm:spec_decode_num_drafts counter\n"
        f"vllm:spec_decode_num_drafts{suffix}{labels} {drafts}\n"
        f"vllm:spec_decode_num_drafts_created{labels} 1.7e+09\n"
        f"vllm:spec_decode_num_draft_tokens{suffix}{labels} {draft_tokens}\n"
        f"vllm:spec_decode_num_accepted_tokens{suffix}{labels} {accepted}\n"
    )


@pytest.mark.parametrize("suffix", ["_total", ""])
def test_both_spellings(suffix: str) -> None:
    delta = difference(exposition(120, 360, 40, suffix), exposition(1120, 3360, 2140, suffix))
    assert (delta["drafts"], delta["draft_tokens"], delta["accepted_tokens"]) == (1000, 3000, 2100)


def test_engines_are_summed() -> None:
    before = exposition(10, 30, 5) + exposition(20, 60, 6, engine="1")
    after = exposition(110, 330, 105) + exposition(220, 660, 206, engine="1")
    assert difference(before, after)["drafts"] == 300


@pytest.mark.parametrize("engine", ["0", "1"])
def test_a_counter_that_falls_is_a_restart_even_if_the_sum_grows(engine: str) -> None:
    other = "1" if engine == "0" else "0"
    before = exposition(100, 300, 50, engine=engine) + exposition(0, 0, 0, engine=other)
    after = exposition(90, 270, 40, engine=engine) + exposition(5000, 15000, 5000, engine=other)
    delta = difference(before, after)
    assert delta["drafts"] is None
    assert "restarted" in delta.reasons["drafts"]


def test_a_moved_start_time_is_a_restart_even_if_every_counter_grew() -> None:
    start = "process_start_time_seconds {}\n"
    delta = difference(
        start.format(1000) + exposition(10, 30, 5), start.format(2000) + exposition(20, 60, 10)
    )
    assert delta["drafts"] is None
    assert "restarted" in delta.reasons["drafts"]
    assert delta.per_position is None


def test_a_vanished_series_is_a_restart() -> None:
    before = exposition(10, 30, 5) + exposition(10, 30, 5, engine="1")
    assert difference(before, exposition(20, 60, 10))["drafts"] is None


def test_a_series_that_appears_starts_at_zero() -> None:
    assert difference("vllm:num_preemptions_total 0\n", exposition(20, 60, 10))["drafts"] == 20


def test_absent_is_none_with_a_reason() -> None:
    delta = difference("", "")
    assert delta["drafts"] is None
    assert "spec_decode_num_drafts" in delta.reasons["drafts"]


def test_zero_is_zero() -> None:
    delta = difference(exposition(5, 15, 2), exposition(5, 15, 2))
    assert delta["drafts"] == 0
    assert "drafts" not in delta.reasons


def test_positions_cache_and_requests() -> None:
    def text(factor: int) -> str:
        rows = [
            f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="0",position="{p}"}} {factor * n}'
            for p, n in enumerate((80, 60, 0))
        ]
        rows += [
            f"vllm:prefix_cache_queries_total {factor * 200}",
            f"vllm:prefix_cache_hits_total {factor * 50}",
        ]
        rows += [
            f'vllm:request_success_total{{finished_reason="length"}} {factor * 20}',
            f'vllm:request_success_total{{finished_reason="stop"}} {factor}',
        ]
        rows += [
            f"vllm:num_preemptions_total {factor * 3}",
            f"vllm:iteration_tokens_total_count {factor * 500}",
        ]
        return "\n".join(rows)

    delta = difference(text(1), text(3))
    assert delta.per_position == (160, 120, 0)
    assert delta.prefix_hit_percent == pytest.approx(25.0)
    assert (delta["requests"], delta["preemptions"], delta["engine_steps"]) == (42, 6, 1000)
    assert delta.finished == {"length": 40, "stop": 2}


def test_old_prefix_cache_names() -> None:
    delta = difference("", "vllm:gpu_prefix_cache_queries_total 200\nvllm:gpu_prefix_cache_hits_total 100\n")
    assert delta.prefix_hit_percent == 50.0


def test_tensor_parallel_copies_count_once() -> None:
    text = (
        'sglang:spec_verify_calls_total{tp_rank="0"} 100\nsglang:spec_verify_calls_total{tp_rank="1"} 100\n'
    )
    assert difference("", text)["drafts"] == 100


def test_labels_with_commas_quotes_and_braces() -> None:
    metrics = parse_metrics('a_total{x="p,q",y="say \\"hi\\"",z="{}"} 3 1700000000\n')
    assert metrics.series("a") == {(("x", "p,q"), ("y", 'say "hi"'), ("z", "{}")): 3.0}


@pytest.mark.parametrize("line", ["", "garbage", "a{b", "a{b=} x", "a b c d", "{} 3", "\x00"])
def test_broken_lines_are_skipped(line: str) -> None:
    assert parse_metrics(line + "\nvllm:num_preemptions_total 4\n").series("vllm:num_preemptions") == {
        (): 4.0
    }


def test_not_a_number_is_none() -> None:
    assert (
        difference("vllm:num_preemptions_total 1\n", "vllm:num_preemptions_total NaN\n")["preemptions"]
        is None
    )


def _real(name: str) -> str:
    return gzip.decompress((DATA / name).read_bytes()).decode()


def test_real_vllm_snapshot() -> None:
    delta = difference("", _real("h200_dspark_k3.prom.gz"))
    assert (delta["drafts"], delta["draft_tokens"], delta["accepted_tokens"]) == (1767, 5301, 3345)
    assert delta.per_position == (1767, 1578, 0)
    assert (delta["requests"], delta["generation_tokens"], delta["prompt_tokens"]) == (20, 5120, 841)
    assert delta.engine == "vllm"


def test_real_vllm_baseline_has_no_speculation() -> None:
    delta = difference("", _real("h200_base.prom.gz"))
    assert delta["drafts"] is None
    assert delta["generation_tokens"] > 0


def test_real_sglang_snapshot() -> None:
    delta = difference("", _real("h200_sgl_ngram.metrics.gz"))
    assert (delta["drafts"], delta["generation_tokens"], delta["requests"]) == (1350, 5384, 22)
    assert delta.engine == "sglang"
