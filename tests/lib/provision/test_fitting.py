"""From recorded activations to a head: which rows are learned from, and that held-out prompts judge it."""

import numpy as np
import pytest

from scripts.lib.provision import fitting
from scripts.lib.provision.fitting import HELD_OUT_EVERY, Activations, Target, fit_eagle, fit_mtp
from scripts.lib.provision.heads import Gates

WIDTH, VOCABULARY, INNER = 16, 12, 24


def numbered(prompts=16, places=6):
    """Activations whose values name their place: prompt * 100 + place."""
    value = np.arange(prompts)[:, None] * 100 + np.arange(places)
    state = np.repeat(value[:, :, None], 2, axis=2).astype(float)
    return Activations(value, state, state + 0.5, np.full(prompts, places))


def test_pairs_put_each_place_beside_its_next():
    hidden, tokens, next_hidden, next_input = numbered(2, 4).pairs()
    assert tokens.tolist() == [0, 1, 2, 100, 101, 102]
    assert hidden[:, 0].tolist() == tokens.tolist()
    assert next_hidden[:, 0].tolist() == [1, 2, 3, 101, 102, 103]
    assert next_input[:, 0].tolist() == [1.5, 2.5, 3.5, 101.5, 102.5, 103.5]


def test_pairs_end_where_an_answer_ends():
    whole = numbered(2, 5)
    cut = Activations(whole.tokens, whole.hidden, whole.last_input, np.array([3, 1]))
    assert cut.pairs()[1].tolist() == [0, 1]


def test_every_eighth_prompt_is_held_out_and_no_prompt_is_in_both_parts():
    fitted, held_out = numbered(20).split()
    assert held_out.tokens[:, 0].tolist() == [700, 1500]
    assert len(fitted.tokens) == 18
    assert not set(fitted.tokens[:, 0]) & set(held_out.tokens[:, 0])


def world():
    """A target whose next state is a known linear map of state and token: what a head should find."""
    random = np.random.default_rng(0)
    embedding = random.standard_normal((VOCABULARY, WIDTH))
    output = embedding * np.exp(0.1 * random.standard_normal(WIDTH))
    gate, up = random.standard_normal((2, INNER, WIDTH))
    target = Target(embedding, output, Gates(gate, up, np.ones(WIDTH), 1e-5))
    move = random.standard_normal((WIDTH, 2 * WIDTH)) / np.sqrt(WIDTH)
    prompts, places = 8 * HELD_OUT_EVERY, 20
    hidden = np.empty((prompts, places, WIDTH))
    tokens = np.empty((prompts, places), dtype=int)
    hidden[:, 0] = random.standard_normal((prompts, WIDTH))
    for place in range(places):
        tokens[:, place] = np.argmax(hidden[:, place] @ output.T, axis=1)
        if place + 1 < places:
            features = target.mtp_features(hidden[:, place], tokens[:, place])
            hidden[:, place + 1] = features @ move.T + 0.01 * random.standard_normal((prompts, WIDTH))
    return target, Activations(tokens, hidden, hidden + 0.1, np.full(prompts, places))


@pytest.mark.parametrize("fit", [fit_mtp, fit_eagle])
def test_a_head_learns_a_predictable_target_and_k_tokens_are_never_likelier_than_fewer(fit):
    target, activations = world()
    _, acceptance = fit(target, activations)
    assert len(acceptance) == fitting.JUDGED_K
    assert acceptance[0] > 0.75
    assert acceptance == sorted(acceptance, reverse=True)


@pytest.mark.parametrize("fit", [fit_mtp, fit_eagle])
def test_a_head_for_another_target_is_judged_as_such(fit):
    target, activations = world()
    shuffled = np.random.default_rng(1).permuted(activations.hidden, axis=0)
    scrambled = Activations(activations.tokens, shuffled, shuffled, activations.lengths)
    assert fit(target, scrambled)[1][0] < 0.5


def test_an_mtp_head_has_the_shape_of_its_layer():
    target, activations = world()
    head, _ = fit_mtp(target, activations)
    assert head.projection.shape == (WIDTH, 2 * WIDTH)
    assert head.down.shape == (WIDTH, INNER)
