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
_ARRIVAL_LIMIT_S = 3.0
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

    Nobody goes before `first` returns and `expected` cells have come, or none has for three seconds.
    """
    tickets = folder / "tickets"
    tickets.mkdir(parents=True, exist_ok=True)
    mine = ticket_name(order)
    (tickets / mine).touch()
    lock = os.open(folder / "turn.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        first()
        _await_arrivals(tickets, expected)
        while not _take(tickets, mine, lock):
            time.sleep(_POLL_S)
        yield
    finally:
        (tickets / mine).replace(tickets / (_DONE + mine))
        os.close(lock)


def _await_arrivals(tickets: Path, expected: int) -> None:
    """Until all have come, or none has for a while: Snakemake starts a large group's last jobs when others end."""
    seen, since = 0, time.monotonic()
    while seen < expected and time.monotonic() - since < _ARRIVAL_LIMIT_S:
        now = len(os.listdir(tickets))
        if now > seen:
            seen, since = now, time.monotonic()
        time.sleep(_POLL_S)


def _take(tickets: Path, mine: str, lock: int) -> bool:
    earlier = sorted(name for name in os.listdir(tickets) if name < mine)
    if any(_counts(name) for name in earlier):
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
