"""How many tokens of a head's drafts greedy decoding would accept, computed without an engine."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Array = np.ndarray


def accepted_share(
    step: Callable[[Array, Array], Array], output: Array, hidden: Array, tokens: Array, lengths: Array, k: int
) -> list[float]:
    """Share of drafts whose first 1, 2, ... `k` tokens are all accepted, over all places with k known tokens to come.

    `hidden` [sequences, places, width] are the target's states, `tokens` [sequences, places] the token it chose at each of
    them, `lengths` [sequences] how many places of each are real. `step(hidden rows, token rows)` gives the head's estimate
    of the next state, and `output` [vocabulary, width] turns a state into logits. Raises ValueError when no place has k tokens.
    """
    places = [(s, t) for s in range(len(tokens)) for t in range(int(lengths[s]) - k)]
    if not places:
        raise ValueError(f"no sequence is longer than {k} tokens")
    sequence, place = np.array(places).T
    state, token = hidden[sequence, place], tokens[sequence, place]
    alive = np.ones(len(places), dtype=bool)
    shares = []
    for ahead in range(1, k + 1):
        state = step(state, token)
        token = np.argmax(state @ output.T, axis=-1)
        alive &= token == tokens[sequence, place + ahead]
        shares.append(float(np.mean(alive)))
    return shares
