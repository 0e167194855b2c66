"""From recorded activations to a fitted head: which rows it learns from, which it is judged by (NumPy only)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from scripts.lib.provision.acceptance import accepted_share
from scripts.lib.provision.heads import Array, Gates, Head, fit_head, rms_normalized

HELD_OUT_EVERY = 8
JUDGED_K = 3


@dataclass(frozen=True)
class Activations:
    """See activations.py for the arrays."""

    tokens: Array
    hidden: Array
    last_input: Array
    lengths: Array

    @classmethod
    def read(cls, path: Path) -> Activations:
        with np.load(path) as arrays:
            return cls(*(arrays[name] for name in ("tokens", "hidden", "last_input", "lengths")))

    def part(self, rows: Array) -> Activations:
        return Activations(self.tokens[rows], self.hidden[rows], self.last_input[rows], self.lengths[rows])

    def split(self) -> tuple[Activations, Activations]:
        """Prompts to fit on, and every eighth, held out."""
        held_out = np.arange(len(self.tokens)) % HELD_OUT_EVERY == HELD_OUT_EVERY - 1
        return self.part(~held_out), self.part(held_out)

    def pairs(self) -> tuple[Array, Array, Array, Array]:
        """State, chosen token, next state and next last-layer input, one row for each place that has a next one."""
        places = np.arange(self.tokens.shape[1] - 1)
        real = places[None, :] < self.lengths[:, None] - 1
        return (
            self.hidden[:, :-1][real],
            self.tokens[:, :-1][real],
            self.hidden[:, 1:][real],
            self.last_input[:, 1:][real],
        )


@dataclass(frozen=True)
class Target:
    """What of the target model a head is built around. `embedding` and `output` are [vocabulary, width].

    A state is the last layer's output before the final norm, and `output` gives logits for a state of any length: the final
    norm's weight is in it. MiMo models hand such states to their heads.
    """

    embedding: Array
    output: Array
    gates: Gates

    def mtp_features(self, hidden: Array, tokens: Array) -> Array:
        eps = self.gates.eps
        return np.concatenate(
            [rms_normalized(hidden, eps), rms_normalized(self.embedding[tokens], eps)], axis=-1
        )

    def eagle_features(self, hidden: Array, tokens: Array) -> Array:
        return np.concatenate([self.embedding[tokens], hidden], axis=-1)


def fit_mtp(target: Target, activations: Activations) -> tuple[Head, list[float]]:
    """A head whose output is normalized, and its acceptance on held-out prompts (`accepted_share`).

    It estimates the input of the target's last layer first, which is what that layer's gates are made for.
    """
    fitted, held_out = activations.split()
    hidden, tokens, next_hidden, next_input = fitted.pairs()
    length = _length(next_input)
    direction = rms_normalized(next_hidden, target.gates.eps)
    features = target.mtp_features(hidden, tokens)
    # Only the direction counts in the end: an error weighs by its share of the length.
    head = fit_head(features, next_input, direction * length[:, None], target.gates, 1 / length)

    def step(state: Array, token: Array) -> Array:
        return rms_normalized(head.predict(target.mtp_features(state, token)), target.gates.eps)

    return head, judge(step, target, held_out)


def fit_eagle(target: Target, activations: Activations) -> tuple[Head, list[float]]:
    """A head whose output is the next state itself, and its acceptance on held-out prompts (`accepted_share`)."""
    fitted, held_out = activations.split()
    hidden, tokens, next_hidden, _ = fitted.pairs()
    features = target.eagle_features(hidden, tokens)
    head = fit_head(features, next_hidden, next_hidden, target.gates, 1 / _length(next_hidden))
    return head, judge(
        lambda state, token: head.predict(target.eagle_features(state, token)), target, held_out
    )


def judge(step: Callable[[Array, Array], Array], target: Target, held_out: Activations) -> list[float]:
    shares = accepted_share(step, target.output, held_out.hidden, held_out.tokens, held_out.lengths, JUDGED_K)
    return [round(share, 4) for share in shares]


def _length(states: Array) -> Array:
    return np.sqrt(np.mean(np.square(states), axis=-1))
