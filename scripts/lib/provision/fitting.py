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
    """What of the target model a head is built around: embeddings (also its output layer), final norm, last layer's gates."""

    embedding: Array
    final_norm: Array
    gates: Gates

    def mtp_features(self, hidden: Array, tokens: Array) -> Array:
        eps = self.gates.eps
        return np.concatenate(
            [rms_normalized(hidden, eps), rms_normalized(self.embedding[tokens], eps)], axis=-1
        )

    def eagle_features(self, hidden: Array, tokens: Array) -> Array:
        return np.concatenate([self.embedding[tokens], hidden], axis=-1)


def fit_mtp(target: Target, activations: Activations) -> tuple[Head, list[float]]:
    """A head whose output passes through the final norm, and its acceptance on held-out prompts (`accepted_share`).

    It estimates the input of the target's last layer first, which is what that layer's gates are made for. The final norm
    takes out each row's length, so rows count by their direction: errors are relative to the length.
    """
    fitted, held_out = activations.split()
    hidden, tokens, next_hidden, next_input = fitted.pairs()
    length = np.sqrt(np.mean(np.square(next_input), axis=-1))
    direction = rms_normalized(next_hidden / target.final_norm, target.gates.eps)
    features = target.mtp_features(hidden, tokens)
    head = fit_head(features, next_input, direction * length[:, None], target.gates, 1 / length)

    def step(state: Array, token: Array) -> Array:
        estimate = head.predict(target.mtp_features(state, token))
        return rms_normalized(estimate, target.gates.eps) * target.final_norm

    return head, judge(step, target, held_out)


def fit_eagle(target: Target, activations: Activations) -> tuple[Head, list[float]]:
    """A head whose output is the next final state itself, and its acceptance on held-out prompts (`accepted_share`)."""
    fitted, held_out = activations.split()
    hidden, tokens, next_hidden, _ = fitted.pairs()
    head = fit_head(target.eagle_features(hidden, tokens), next_hidden, next_hidden, target.gates)
    return head, judge(
        lambda state, token: head.predict(target.eagle_features(state, token)), target, held_out
    )


def judge(step: Callable[[Array, Array], Array], target: Target, held_out: Activations) -> list[float]:
    shares = accepted_share(
        step, target.embedding, held_out.hidden, held_out.tokens, held_out.lengths, JUDGED_K
    )
    return [round(share, 4) for share in shares]
