"""Answers against answers: where they part, how often, and when that is more than rounding does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.lib.outputs import (
    ABOVE,
    IDENTICAL,
    NOT_COMPARED,
    UNKNOWN,
    UNUSUAL,
    USUAL_PER_1000,
    WITHIN,
    WORDS,
    Agreement,
    agreement,
    answers_of,
    chance,
    first_difference,
    judge,
)
from tests import request_factory


def request(index=0, tokens=(1, 2, 3), text="one two three", sha="a", reason="stop", error=None):
    said = {"output": text, "token_ids": tokens and tuple(tokens)}
    return request_factory.request(index, finish_reason=reason, error=error, request_sha256=sha, **said)


def answers(*requests):
    return answers_of(requests)


def agreeing(length, compared, firsts=()):
    """Answers of so many tokens, of which some part at these positions."""
    same = compared - len(firsts)
    return Agreement(compared, same, tuple(firsts), same * length + sum(first + 1 for first in firsts))


@pytest.mark.parametrize(
    ("tokens", "others", "first"),
    [
        ([1, 2, 3], [1, 2, 3], None),
        ([1, 2, 3], [1, 9, 3], 1),
        ([1, 2, 3], [9, 2, 3], 0),
        ([1, 2, 3], [1, 2], 2),
        ([], [1], 0),
        ([], [], None),
    ],
)
def test_the_first_difference(tokens, others, first):
    assert first_difference(tokens, others) == first
    assert first_difference(others, tokens) == first


def test_tokens_decide_where_the_server_tells_them():
    found = agreement(
        answers(request(0, (1, 2, 3)), request(1, (4, 5, 6, 7), sha="b")),
        answers(request(0, (1, 2, 3)), request(1, (4, 5, 9, 9), sha="b")),
    )
    assert found == Agreement(2, 1, (2,), 3 + 3)
    assert found.share == 0.5
    assert found.per_1000 == pytest.approx(1000 / 6)
    assert found.first_median == 2


def test_words_decide_where_it_does_not():
    found = agreement(
        answers(request(0, None, "The old bridge stands."), request(1, None, "橋は川を渡る", sha="b")),
        answers(request(0, None, "The old tower stands."), request(1, None, "橋は谷を渡る", sha="b")),
    )
    assert (found.firsts, found.unit) == ((2, 2), WORDS)


def test_another_white_space_is_a_difference_too():
    found = agreement(answers(request(0, None, "a\n b")), answers(request(0, None, "a b")))
    assert (found.compared, found.identical) == (1, 0)


def test_one_side_without_tokens_is_compared_by_words():
    found = agreement(answers(request(0, (1, 2))), answers(request(0, None)))
    assert (found.identical, found.unit) == (1, WORDS)


def test_only_requests_that_both_completed_count():
    mine = answers(request(0), request(1), request(2, error={"type": "timeout"}), request(3, reason=None))
    theirs = answers(request(0), request(2), request(3))
    assert agreement(mine, theirs).compared == 1


def test_other_requests_are_not_compared():
    assert agreement(answers(request(0, sha="a")), answers(request(0, sha="b"))).compared == 0
    assert agreement(answers(request(0)), answers(request(1))).compared == 0
    assert answers(request(0, sha=None)) == {}


def test_nothing_compared_has_no_figures():
    nothing = Agreement()
    assert (nothing.share, nothing.per_1000, nothing.first_median) == (None, None, None)
    assert judge(nothing, None) == NOT_COMPARED


# The real figures: answers of 64 tokens, vLLM 0.27.1 on a CPU.
NOISE_C4 = agreeing(64, 8, (8, 24))


def test_all_alike_is_identical_whatever_the_noise():
    for noise in (None, Agreement(), NOISE_C4):
        assert judge(agreeing(64, 4), noise) == IDENTICAL


def test_half_of_the_answers_at_concurrency_4_are_within_the_baselines_own_noise():
    assert judge(agreeing(64, 8, (11, 19, 30, 42)), NOISE_C4) == WITHIN


def test_200_drafted_tokens_a_step_are_no_fault_though_the_noise_is_unknown():
    assert judge(agreeing(64, 4, (17, 30)), None) == UNKNOWN


def test_an_mtp_head_that_parts_early_in_two_of_five_short_answers_is_no_fault():
    assert judge(agreeing(24, 5, (7, 8)), None) == UNKNOWN


@pytest.mark.parametrize("noise", [None, Agreement(), NOISE_C4, agreeing(64, 8)])
def test_a_method_that_parts_early_in_every_answer_is_unusual(noise):
    assert judge(agreeing(64, 8, (3, 5, 4, 12, 7, 2, 9, 6)), noise) == UNUSUAL


def test_a_baseline_as_unstable_as_the_method_explains_it():
    wild = agreeing(64, 16, [5] * 16)
    assert judge(agreeing(64, 8, [6] * 8), wild) == WITHIN


def test_more_than_the_noise_but_no_more_than_rounding_does():
    quiet = agreeing(256, 40)
    assert judge(agreeing(256, 40, range(60, 180, 10)), quiet) == ABOVE


def test_two_answers_are_too_few_to_call_it_unusual():
    assert judge(agreeing(64, 2, (0, 0)), None) == UNKNOWN
    assert judge(agreeing(64, 3, (0, 0, 0)), None) == UNUSUAL


def test_long_answers_may_all_differ():
    """A rate of 2 per 1000 makes nearly all answers of 2048 tokens differ: no alarm."""
    mine = agreeing(2048, 20, range(100, 2100, 100))
    assert mine.share == 0
    assert judge(mine, agreeing(2048, 20, range(50, 2050, 100))) == WITHIN
    assert judge(mine, None) == UNKNOWN


def test_the_chance_is_the_binomials():
    # Five differences on either side of as many tokens: at least five of ten heads.
    even = agreeing(100, 5, (99,) * 5)
    assert chance(even, even) == pytest.approx(638 / 1024)
    assert chance(agreeing(100, 5), even) == 1
    assert chance(agreeing(100, 5, (99,) * 5), agreeing(100, 5)) == pytest.approx(2**-5)


TOKENS = st.lists(st.integers(0, 3), max_size=12)


@given(TOKENS, TOKENS)
def test_equal_up_to_the_first_difference(tokens, others):
    first = first_difference(tokens, others)
    if first is None:
        assert tokens == others
    else:
        assert tokens[:first] == others[:first]
        assert tokens[first : first + 1] != others[first : first + 1]


@given(st.lists(st.integers(0, 63), max_size=20), st.integers(0, 20), st.integers(0, 20))
def test_alarms_are_rarer_than_rounding(firsts, same, noisy):
    mine = agreeing(64, len(firsts) + same, firsts)
    verdict = judge(mine, agreeing(64, 20, [10] * noisy))
    if verdict == UNUSUAL:
        assert mine.per_1000 > USUAL_PER_1000
        assert len(firsts) >= 3
    if not firsts and same:
        assert verdict == IDENTICAL
