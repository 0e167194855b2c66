"""An event loop whose timers are exact to some ten microseconds, and that knows when it woke up."""

from __future__ import annotations

import asyncio
import select
import selectors
import time


class _PreciseSelector(selectors.EpollSelector):
    """Waits to the microsecond, where epoll's own timeout is rounded up to a millisecond."""

    woke = 0.0

    def select(self, timeout: float | None = None) -> list:
        if timeout is not None and timeout > 0:
            # An epoll descriptor is itself something that select() can wait for.
            select.select([self.fileno()], [], [], timeout)
            timeout = 0
        ready = super().select(timeout)
        self.woke = time.monotonic()
        return ready


class PreciseLoop(asyncio.SelectorEventLoop):
    """The loop of the fake server."""

    def __init__(self) -> None:
        self._precise_selector = _PreciseSelector()
        super().__init__(self._precise_selector)

    @property
    def woke(self) -> float:
        """When the events now being handled were found, on the loop's clock.

        Requests that come together all arrived then, though one is handled after the other.
        """
        return self._precise_selector.woke
