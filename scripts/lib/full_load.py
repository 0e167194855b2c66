"""When all workers of a closed loop were busy, and what the server gave then.

At its end the loop runs dry: the last worker runs alone, and tokens / wall time is below what the server gives at this concurrency
(docs/client.md has figures). Pure; times in seconds on one clock."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate


class FullLoad:
    """The time in which at least `concurrency` of the requests with these (start, end) were under way.

    Raises ValueError without requests."""

    def __init__(self, spans: Sequence[tuple[float, float]], concurrency: int) -> None:
        if not spans:
            raise ValueError("there is no request")
        self.wall_s = max(end for _, end in spans) - min(start for start, _ in spans)
        # At one moment an end sorts before a start: a worker's next request does not overlap its last one.
        changes = sorted([(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans])
        running = list(accumulate(change for _, change in changes))
        self._at_s = [at_s for at_s, _ in changes]
        self._full = [number >= concurrency for number in running]
        lengths = (
            (until_s - since_s) * full
            for since_s, until_s, full in zip(self._at_s, self._at_s[1:], self._full, strict=False)
        )
        self._before_s = list(accumulate(lengths, initial=0.0))

    @property
    def share(self) -> float | None:
        """Of the time from the first start to the last end; None when no time passed."""
        return self._before_s[-1] / self.wall_s if self.wall_s > 0 else None

    def tps(self, outputs: Sequence[tuple[float, float, int]]) -> float | None:
        """Tokens/s while it lasted, from (arrival of the first token, end, tokens) of each answer; None when it never was.

        Tokens after the first count as spread evenly until the end."""
        full_s = self._before_s[-1]
        if full_s <= 0:
            return None
        return sum(self._tokens(*output) for output in outputs) / full_s

    def _tokens(self, first_s: float, end_s: float, tokens: int) -> float:
        if end_s <= first_s:
            return tokens * self._is(first_s)
        rest = (tokens - 1) * (self._until(end_s) - self._until(first_s)) / (end_s - first_s)
        return self._is(first_s) + rest

    def _is(self, at_s: float) -> bool:
        place = bisect_right(self._at_s, at_s) - 1
        return place >= 0 and self._full[place]

    def _until(self, at_s: float) -> float:
        """How much of it lies before `at_s`."""
        place = bisect_right(self._at_s, at_s) - 1
        if place < 0:
            return 0.0
        return self._before_s[place] + self._full[place] * (at_s - self._at_s[place])
