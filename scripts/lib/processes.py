"""Facts about processes, read from /proc (Linux)."""

from __future__ import annotations


def start_ticks(pid: int) -> int | None:
    """Start time of a live process in clock ticks since boot, None when it is gone or a zombie.

    Together with the pid it names one process for good: pids are reused, start times are not.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def alive(pid: int, ticks: int) -> bool:
    """Whether the very process that had this pid and start time still runs."""
    return start_ticks(pid) == ticks
