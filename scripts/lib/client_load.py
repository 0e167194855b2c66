"""What the load generator itself cost, and how late its event loop ran: whether its figures can be trusted."""

from __future__ import annotations

import asyncio
import gc
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

PERIOD_S = 0.01
"""Between two samples, each of which costs some 10 microseconds: a thousandth of a core."""


@dataclass(frozen=True)
class ClientLoad:
    """The client's own part in a window of `wall_s` that began at `started_at` (seconds since the epoch).

    `lag_p99_s` and `lag_max_s`: how long the event loop took to come to what was due, looked at every 10 ms. An answer that
    arrived at such a moment was noticed as late. `cpu_s` counts all threads of the process; `cpu_share` is in cores.
    """

    started_at: float
    wall_s: float
    cpu_s: float
    cpu_share: float
    lag_p99_s: float
    lag_max_s: float

    @property
    def window(self) -> dict[str, float]:
        """Its bounds in seconds since the epoch, and its duration."""
        return {"start_s": self.started_at, "end_s": self.started_at + self.wall_s, "wall_s": self.wall_s}


class LoadMeter:
    """Watches the running event loop while entered; `load` is known after. `began_s`: its start on time.perf_counter's clock."""

    load: ClientLoad

    def __enter__(self) -> LoadMeter:
        self._loop = asyncio.get_running_loop()
        self._lags_s: list[float] = []
        self._started_at, self._cpu_s = time.time(), time.process_time()
        self.began_s = time.perf_counter()
        self._due_s = self._loop.time() + PERIOD_S
        self._wait()
        return self

    def __exit__(self, *_: object) -> None:
        wall_s = time.perf_counter() - self.began_s
        cpu_s = time.process_time() - self._cpu_s
        self._timer.cancel()
        self._take_due()
        lags_s = sorted(self._lags_s) or [0.0]
        p99_s = lags_s[math.ceil(0.99 * len(lags_s)) - 1]
        self.load = ClientLoad(self._started_at, wall_s, cpu_s, cpu_s / wall_s, p99_s, lags_s[-1])

    def _wait(self) -> None:
        self._timer = self._loop.call_at(self._due_s, self._sample)

    def _sample(self) -> None:
        self._take_due()
        self._wait()

    def _take_due(self) -> None:
        # Moments lie on a fixed grid: a loop that stood still for a second was late at each of the hundred in it, not once.
        now_s = self._loop.time()
        while self._due_s <= now_s:
            self._lags_s.append(now_s - self._due_s)
            self._due_s += PERIOD_S


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep Python's garbage collector out of a timed window: a full collection stops the process for 25 ms."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
