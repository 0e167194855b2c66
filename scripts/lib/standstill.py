"""When an engine stood still: times without any token although answers were being generated.

One step of an engine takes all its requests on, so between two arrivals of tokens lies at most one step. What may last longer is
the prefill of those that wait for their first token, which holds up all others; its tokens tell how long it can take.
Pure; times in seconds on one clock.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from scripts.lib.evidence import Request

LEAST_S = 0.5
"""What is shorter is no standstill, however fast the engine is otherwise,"""
STEPS = 20
"""nor what is shorter than so many usual steps: slow engines take seconds for one. A step is an interval between chunks of one
request, which under speculation bring several tokens."""
STEPS_PER_PROMPT_TOKEN = 3
"""Nor what a prefill may take that goes on meanwhile: GPUs need hundredths of a step for a token, slow CPUs as much as a step."""
_TOGETHER_S = 0.001
"""Chunks nearer than this came in one packet: something on the way collects them, and what counts is the time between packets."""


def standstills(measured: Sequence[Request]) -> list[float] | None:
    """How long each of them took. None where it cannot be known: chunks without times, or no answer in more than one chunk."""
    answered = [request for request in measured if request.first_token_s is not None]
    if not all(request.chunk_s for request in answered):
        return None
    between = [b - a for request in answered for a, b in pairwise(request.chunk_s) if b - a > _TOGETHER_S]
    if not between:
        return None
    step_s = median(between)
    arrivals = sorted(at_s for request in answered for at_s in request.chunk_s)
    return [
        b - a
        for a, b in pairwise(arrivals)
        if b - a > max(LEAST_S, STEPS * step_s)
        and _generating(answered, a, b)
        and b - a > STEPS_PER_PROMPT_TOKEN * step_s * _tokens_waiting(measured, a, b)
    ]


def _generating(answered: Sequence[Request], since_s: float, until_s: float) -> bool:
    """Whether any request was, all the time. Of one that failed nobody knows whether it ran after its last chunk."""
    return any(request.chunk_s[0] <= since_s and until_s <= request.chunk_s[-1] for request in answered)


def _tokens_waiting(measured: Sequence[Request], since_s: float, until_s: float) -> float:
    """Prompt tokens of the requests that waited for their first token then; infinite where one's length is not known."""
    waiting = [
        request for request in measured if request.start_s < until_s and since_s < _end_of_waiting_s(request)
    ]
    lengths = [request.prompt_tokens for request in waiting]
    return math.inf if None in lengths else sum(lengths)


def _end_of_waiting_s(request: Request) -> float:
    return next((at_s for at_s in (request.first_token_s, request.end_s) if at_s is not None), math.inf)
