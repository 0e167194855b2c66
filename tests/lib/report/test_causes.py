"""What each speed-up is made of, and figures that no machine can reach."""

from __future__ import annotations

import pytest

from scripts.lib.analysis.roofline import Facts
from scripts.lib.report.causes import above_limit, causes
from tests.report.pages import results
from tests.results_factory import METHODS, sweep, with_a_bad_baseline


def test_a_speedup_is_taken_apart() -> None:
    (setting,) = causes(results(sweep(repeats=1)).analysis)
    assert setting.heading == "cpu · vllm · smollm2 · max_model_len 1024 · scenario code"
    (name, figures) = setting.rows[0]
    assert name == "mtp k1, concurrency 1"
    speedup, length, cost = (float(text.removesuffix("x")) for text in figures[:3])
    assert length == 1.80
    assert cost == pytest.approx(length / speedup, abs=0.02)


def test_without_a_baseline_nothing_can_be_taken_apart() -> None:
    assert list(causes(results(sweep(METHODS[1:], repeats=1)).analysis)) == []
    assert list(causes(results([]).analysis)) == []


def test_a_baseline_that_is_not_valid_is_named() -> None:
    (setting, *_) = causes(results(with_a_bad_baseline()).analysis)
    assert setting.rows[0][0] == "mtp k1, concurrency 1 (none is invalid)"


def test_what_is_faster_than_memory_is_a_doubt() -> None:
    slow = Facts(bandwidth_gb_s=1.0, active_weight_gb=1.0)
    (line,) = above_limit(results(sweep(repeats=1), slow).analysis)
    assert "above what the memory's bandwidth allows" in line
    assert above_limit(results(sweep(repeats=1)).analysis) == []
