"""A speed-up is acceptance against step cost: numbers that multiply out."""

from __future__ import annotations

import pytest

from scripts.lib.analysis.step_cost import split

BASE = {
    "method": "none",
    "k": 0,
    "tpot_mean_s": 0.010,
    "speedup": 1.0,
    "tokens_per_step": None,
    "acceptance_length": None,
}


def mtp(**values: object) -> dict[str, object]:
    """3 tokens a step, each step twice as long as the baseline's: decoding 1.5 times as fast."""
    known = {"method": "mtp", "k": 3, "tpot_mean_s": 0.010 / 1.5, "speedup": 1.35, "acceptance_length": 3.0}
    return BASE | known | values


def test_the_parts_multiply_to_the_speedup() -> None:
    found = split(mtp(), BASE)
    assert found.decode_speedup == pytest.approx(1.5)
    assert found.step_cost == pytest.approx(2.0)
    assert found.rest == pytest.approx(0.9)
    assert found.tokens_per_step / found.step_cost * found.rest == pytest.approx(1.35)


def test_break_even_is_where_the_speedup_would_be_one() -> None:
    found = split(mtp(), BASE)
    assert found.break_even_length == pytest.approx(3.0 / 1.35)
    assert found.break_even_length / found.step_cost * found.rest == pytest.approx(1)
    assert found.break_even_rate == pytest.approx((3.0 / 1.35 - 1) / 3)


def test_steps_without_a_draft_count_for_methods_that_skip() -> None:
    """Field report F25: the mean length of ngram describes the lucky steps only."""
    found = split(mtp(method="ngram", acceptance_length=4.6, tokens_per_step=1.72), BASE)
    assert found.tokens_per_step == 1.72
    assert found.step_cost == pytest.approx(1.72 / 1.5)


def test_the_baseline_puts_out_one_token_a_step() -> None:
    found = split(BASE, BASE)
    assert (found.tokens_per_step, found.step_cost, found.reason) == (1.0, None, None)


@pytest.mark.parametrize(
    ("point", "baseline", "words"),
    [
        (mtp(), None, "no `none`"),
        (mtp(acceptance_length=None), BASE, "tokens per step"),
        (mtp(tpot_mean_s=None), BASE, "time per output token"),
        (mtp(speedup=None), BASE, "speed-up"),
    ],
)
def test_missing_figures_are_named(point, baseline, words) -> None:
    found = split(point, baseline)
    assert found.step_cost is None
    assert words in found.reason
