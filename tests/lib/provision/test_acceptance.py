"""Counting accepted drafts, on sequences where the right number is known."""

import numpy as np
import pytest

from scripts.lib.provision.acceptance import accepted_share

VOCABULARY = np.eye(5)
TOKENS = np.array([[0, 1, 2, 3, 4, 0], [2, 3, 4, 4, 4, 4]])
HIDDEN = VOCABULARY[TOKENS]


def successor(state, token):
    """Guesses that each token is followed by the next number."""
    return VOCABULARY[(token + 1) % 5]


def test_a_head_that_is_always_right_is_always_accepted():
    assert accepted_share(successor, VOCABULARY, HIDDEN[:1], TOKENS[:1], np.array([6]), 3) == [1.0, 1.0, 1.0]


def test_a_draft_counts_up_to_its_first_wrong_token():
    # second row: after 2 and 3 the guesses 3, 4 and 4 are right, then 0, 1, .. are wrong
    shares = accepted_share(successor, VOCABULARY, HIDDEN[1:], TOKENS[1:], np.array([6]), 2)
    assert shares == [2 / 4, 1 / 4]


def test_places_after_the_end_do_not_count():
    assert accepted_share(successor, VOCABULARY, HIDDEN[1:], TOKENS[1:], np.array([3]), 1) == [1.0]


def test_a_later_hit_does_not_revive_a_draft():
    tokens = np.array([[0, 3, 2]])
    shares = accepted_share(
        lambda state, token: VOCABULARY[(token + 1) % 5],
        VOCABULARY,
        VOCABULARY[tokens],
        tokens,
        np.array([3]),
        2,
    )
    assert shares == [0.0, 0.0]


def test_no_place_to_judge_is_an_error_and_not_zero():
    with pytest.raises(ValueError, match="longer than 3"):
        accepted_share(successor, VOCABULARY, HIDDEN, TOKENS, np.array([3, 2]), 3)
