"""Whether speculation changes what a model says: answers to the same requests, held against the baseline's. Pure.

Greedy decoding with and without speculation gives the same answer, up to rounding: another batch or another width of the
verifying step rounds otherwise, and where two tokens are nearly as likely the answer goes another way from there. Such
differences fall anywhere, about so many per thousand tokens, so that long answers differ more often. What is judged is
therefore the number of differences per token that was compared, and `none` against itself shows what is usual.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scripts.lib.evidence import Request
from scripts.lib.words import units

TOKENS, WORDS = "tokens", "words"

IDENTICAL, WITHIN, ABOVE, UNKNOWN, UNUSUAL, NOT_COMPARED = (
    "identical",
    "within noise",
    "above noise",
    "noise unknown",
    "UNUSUAL",
    "not compared",
)
"""Verdicts. `above noise`: more than `none` differs from itself, but no more than rounding alone has been seen to cause."""

USUAL_PER_1000 = 40.0
"""Differences per 1000 tokens that rounding alone has not been seen to exceed. Seen with vLLM 0.27.1 on a CPU and a model of
135M parameters in bf16, the worst case for near-ties: `none` against itself at concurrency 4 about 5; sound methods at
concurrency 4, half of the answers different within 64 tokens, about 12; 200 drafted tokens a step at concurrency 1 about 12;
an MTP head at concurrency 1, two of five short answers, 23. A method that verifies wrongly differs within the first tokens of
every answer: 50 and more."""

SIGNIFICANT = 0.01
FEWEST = 3
"""So many answers must differ before anything is called unusual."""

Key = tuple[int, str]
Answers = Mapping[Key, Request]


@dataclass(frozen=True)
class Agreement:
    """How answers to the same requests agree. `firsts` are the positions (from 0) of the first difference in those that
    differ; `looked_at` counts tokens up to and including it, or the whole answer. In words where a server tells no tokens.
    """

    compared: int = 0
    identical: int = 0
    firsts: tuple[int, ...] = ()
    looked_at: int = 0
    unit: str = TOKENS

    def __add__(self, other: Agreement) -> Agreement:
        return Agreement(
            self.compared + other.compared,
            self.identical + other.identical,
            self.firsts + other.firsts,
            self.looked_at + other.looked_at,
            WORDS if WORDS in (self.unit, other.unit) else TOKENS,
        )

    @property
    def share(self) -> float | None:
        return self.identical / self.compared if self.compared else None

    @property
    def per_1000(self) -> float | None:
        """Differences per 1000 tokens: the maximum-likelihood estimate of a constant rate, answers that end without a
        difference being censored there."""
        return 1000 * len(self.firsts) / self.looked_at if self.looked_at else None

    @property
    def first_median(self) -> float | None:
        return statistics.median(self.firsts) if self.firsts else None


def answers_of(requests: Sequence[Request]) -> dict[Key, Request]:
    """The completed ones by what was asked; none of evidence that does not tell."""
    return {
        (request.index, request.request_sha256): request
        for request in requests
        if request.completed and request.request_sha256 is not None and request.output is not None
    }


def agreement(answers: Answers, others: Answers) -> Agreement:
    """Over the requests that both answered."""
    total = Agreement()
    for key in sorted(answers.keys() & others.keys()):
        total += _one(answers[key], others[key])
    return total


def _one(answer: Request, other: Request) -> Agreement:
    if answer.token_ids is not None and other.token_ids is not None:
        first, length = first_difference(answer.token_ids, other.token_ids), len(answer.token_ids)
        unit = TOKENS
    else:
        ours, theirs = units(answer.output), units(other.output)
        first, length, unit = first_difference(ours, theirs), len(ours), WORDS
        if first is None and answer.output != other.output:
            first = len(ours)  # white space alone
    if first is None:
        return Agreement(1, 1, (), length, unit)
    return Agreement(1, 0, (first,), first + 1, unit)


def first_difference(tokens: Sequence[object], others: Sequence[object]) -> int | None:
    """Position of the first token that differs, or at which one answer ends; None for equal answers."""
    for position, (token, other) in enumerate(zip(tokens, others, strict=False)):
        if token != other:
            return position
    return None if len(tokens) == len(others) else min(len(tokens), len(others))


def chance(mine: Agreement, noise: Agreement) -> float:
    """Probability of at least so many differences, had `mine` the rate of `noise`: given their sum, the differences of two
    constant rates fall on either side in proportion to the tokens looked at (exact conditional test of two Poisson rates).
    """
    from scipy.stats import binomtest

    ours, theirs = len(mine.firsts), len(noise.firsts)
    if not ours:
        return 1.0
    share = mine.looked_at / (mine.looked_at + noise.looked_at)
    return float(binomtest(ours, ours + theirs, share, alternative="greater").pvalue)


def judge(mine: Agreement, noise: Agreement | None) -> str:
    """The verdict over a method's answers, `noise` being those of `none` against itself (None: unknown).

    UNUSUAL takes three things: differences in FEWEST answers at least, more per token than USUAL_PER_1000, and significantly
    more than the noise where that is known.
    """
    if not mine.compared:
        return NOT_COMPARED
    if mine.identical == mine.compared:
        return IDENTICAL
    known = noise is not None and noise.compared > 0
    above = known and chance(mine, noise) < SIGNIFICANT
    many = len(mine.firsts) >= FEWEST and mine.per_1000 > USUAL_PER_1000
    if many and (above or not known):
        return UNUSUAL
    if not known:
        return UNKNOWN
    return ABOVE if above else WITHIN
