"""The engine: who runs, who waits, and when which tokens come out, on an absolute clock."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from .drafting import Drafting
from .generation import Answer
from .metrics import Counters, Gauges
from .settings import Settings


class Sink(Protocol):
    """Where the tokens of a request go."""

    def tokens(self, start: int, end: int, finish_reason: str | None) -> None: ...

    def close_early(self, clean: bool) -> None: ...

    def engine_died(self) -> None: ...


@dataclass(eq=False)
class Generation:
    """One request in the engine. `due` is when its next tokens come out, in seconds of the loop's clock."""

    prompt_tokens: list[str]
    answer: Answer
    sink: Sink
    withhold: dict | None = None
    hang: bool = False
    due: float = 0.0
    done_tokens: int = 0
    cached_tokens: int = 0
    drafts: int = 0


class Engine:
    """Serves generations. All methods run on the event loop.

    One timer serves all: requests in lockstep, 64 of them every few milliseconds, then cost one wake-up and not 64.
    """

    def __init__(
        self, settings: Settings, k: int, max_num_seqs: int, prefix_caching: bool, drafting: Drafting
    ) -> None:
        self.settings = settings
        self.counters = Counters(accepted_per_position=[0] * k)
        self.dead = False
        self._drafting = drafting
        self._max_num_seqs = max_num_seqs
        self._active: set[Generation] = set()
        self._waiting: deque[Generation] = deque()
        self._blocks: set[int] | None = set() if prefix_caching else None
        self._loop = asyncio.get_running_loop()
        self._started = 0
        self._planned: list[tuple[float, int, Generation]] = []
        """A heap of (due, order of planning, who); an entry whose generation no longer runs is passed over."""
        self._plans = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def in_flight(self) -> int:
        return len(self._active) + len(self._waiting)

    def gauges(self) -> Gauges:
        size = self.settings.block_size
        blocks = sum(-(-(len(g.prompt_tokens) + g.done_tokens) // size) for g in self._active)
        total = max(1, self.settings.kv_cache_tokens // size)
        return Gauges(len(self._active), len(self._waiting), min(1.0, blocks / total))

    def submit(self, generation: Generation, arrival: float) -> None:
        """Take a request that arrived at `arrival`; it waits when max_num_seqs already run."""
        if len(self._active) < self._max_num_seqs:
            self._start(generation, arrival)
        else:
            self._waiting.append(generation)

    def cancel(self, generation: Generation) -> None:
        """Forget a request whose client is gone."""
        if generation in self._active:
            self._release(generation)
        elif generation in self._waiting:
            self._waiting.remove(generation)

    def die(self) -> None:
        """Every request in flight learns that its engine is dead, and no more are served."""
        self.dead = True
        lost = [*self._active, *self._waiting]
        self._active.clear()
        self._waiting.clear()
        for generation in lost:
            generation.sink.engine_died()

    def _start(self, generation: Generation, now: float) -> None:
        self._active.add(generation)
        self._started += 1
        every = self.settings.preempt_every
        if every and self._started % every == 0:
            self.counters.preemptions += 1
        count = len(generation.prompt_tokens)
        generation.cached_tokens = cached = self._cached_tokens(generation.prompt_tokens)
        generation.due = now + self.settings.ttft_s + self.settings.prefill_s_per_token * (count - cached)
        self._plan(generation)
        self._wake_for_the_next()

    def _plan(self, generation: Generation) -> None:
        self._plans += 1
        heapq.heappush(self._planned, (generation.due, self._plans, generation))

    def _wake_for_the_next(self) -> None:
        if not self._planned:
            return
        due = self._planned[0][0]
        if self._timer is None or due < self._timer.when():
            if self._timer:
                self._timer.cancel()
            self._timer = self._loop.call_at(due, self._work)

    def _work(self) -> None:
        """Deliver all that is due by now."""
        self._timer = None
        now = self._loop.time()
        while self._planned and self._planned[0][0] <= now:
            generation = heapq.heappop(self._planned)[2]
            if generation in self._active:
                (self._step if generation.done_tokens else self._prefilled)(generation)
        self._wake_for_the_next()

    def _prefilled(self, generation: Generation) -> None:
        self.counters.prompt_tokens += len(generation.prompt_tokens)
        self.counters.prefills += 1
        self._advance(generation, 1)

    def _step(self, generation: Generation) -> None:
        left = len(generation.answer.pieces) - generation.done_tokens
        step = self._drafting.at(len(self._active))
        accepted = step.acceptance.draw() if step.k else 0
        count = min(1 + accepted, left)
        self.counters.decode_steps += 1
        if step.k:
            generation.drafts += 1
            emitted = self.settings.acceptance_counts == "emitted"
            self.counters.draft(step.k, count - 1 if emitted else accepted)
        self._advance(generation, count)

    def _advance(self, generation: Generation, count: int) -> None:
        """Deliver `count` tokens; the next step is planned from when this one was due, not from now."""
        start = generation.done_tokens
        end = start + count
        finished = end >= len(generation.answer.pieces)
        if self._withheld(generation, start, finished):
            return
        generation.done_tokens = end
        self.counters.generation_tokens += count
        if finished:
            reason = generation.answer.finish_reason
            self.counters.finished[reason] += 1
            self._count_ended(generation)
            self._release(generation)
            generation.sink.tokens(start, end, reason)
            return
        generation.sink.tokens(start, end, None)
        running = len(self._active)
        generation.due += self._drafting.at(running).seconds(running)
        self._plan(generation)

    def _count_ended(self, generation: Generation) -> None:
        ended = self.counters.ended
        ended.requests += 1
        ended.prompt_tokens += len(generation.prompt_tokens)
        ended.cached_tokens += generation.cached_tokens
        ended.generation_tokens += generation.done_tokens
        ended.drafts += generation.drafts

    def _withheld(self, generation: Generation, start: int, finished: bool) -> bool:
        """Whether a fault keeps these tokens back: any after the first `after_tokens`, and the last."""
        fault = generation.withhold
        if fault is None or (start < fault["after_tokens"] and not finished):
            return False
        if not generation.hang:
            self._release(generation)
            generation.sink.close_early(fault["clean"])
        return True

    def _release(self, generation: Generation) -> None:
        self._active.remove(generation)
        if self._waiting and not self.dead:
            self._start(self._waiting.popleft(), self._loop.time())

    def _cached_tokens(self, tokens: list[str]) -> int:
        """Tokens of the prompt that full blocks of earlier prompts cover; at least one is always computed."""
        if self._blocks is None:
            return 0
        size, chain, hits, matching = self.settings.block_size, 0, 0, True
        for end in range(size, len(tokens) + 1, size):
            chain = hash((chain, *tokens[end - size : end]))
            if matching and chain in self._blocks and end < len(tokens):
                hits = end
            else:
                matching = False
            self._blocks.add(chain)
        self.counters.prefix_queries += len(tokens)
        self.counters.prefix_hits += hits
        return hits
