"""One measurement at a time per boot, in the order of the cells, without a coordinator.

All cells of a boot start at about the same time and meet in one folder. Each leaves a ticket whose name sorts by its
turn; when all that are expected have come, whoever has the first ticket of the living takes the lock. A process that dies
leaves a ticket that no longer counts.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from scripts.lib.processes import alive, start_ticks

_POLL_S = 0.1
_ARRIVAL_LIMIT_S = 30.0
_OFFSET = 10**9
_DONE = "~"
"""Prefix of a ticket whose turn is over; sorts after every name."""


def ticket_name(turn: tuple[str, int]) -> str:
    """File name that sorts like (scenario, number); negative numbers included."""
    scenario, number = turn
    return f"{scenario} {number + _OFFSET:010d} {os.getpid()} {start_ticks(os.getpid())}"


def _counts(ticket: str) -> bool:
    pid, ticks = ticket.split(" ")[-2:]
    return not ticket.startswith(_DONE) and alive(int(pid), int(ticks))


@contextmanager
def turn(
    folder: Path, order: tuple[str, int], expected: int, first: Callable[[], object] = lambda: None
) -> Iterator[None]:
    """Hold the boot that meets in `folder` for one cell; waits for every living cell with an earlier turn.

    Nobody goes before `expected` cells have come (or half a minute has passed: one of them may have died on its way), and
    before `first` returns.
    """
    tickets = folder / "tickets"
    tickets.mkdir(parents=True, exist_ok=True)
    mine = ticket_name(order)
    (tickets / mine).touch()
    lock = os.open(folder / "turn.lock", os.O_RDWR | os.O_CREAT, 0o644)
    came = time.monotonic()
    try:
        first()
        while len(os.listdir(tickets)) < expected and time.monotonic() - came < _ARRIVAL_LIMIT_S:
            time.sleep(_POLL_S)
        while not _take(tickets, mine, lock):
            time.sleep(_POLL_S)
        yield
    finally:
        (tickets / mine).replace(tickets / (_DONE + mine))
        os.close(lock)


def _take(tickets: Path, mine: str, lock: int) -> bool:
    earlier = sorted(name for name in os.listdir(tickets) if name < mine)
    if any(_counts(name) for name in earlier):
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
