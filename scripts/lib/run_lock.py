"""One run at a time per working directory, by a lock that goes with the process, even when it is killed."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class Busy(RuntimeError):
    """Another run holds the folder; the message names its process."""


def hold(path: Path) -> int:
    """Take the lock for the rest of this process's life; returns its file descriptor. Raises Busy."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(lock, 32, 0).decode(errors="replace").strip() or "unknown"
        os.close(lock)
        raise Busy(
            f"another run is active in this folder (process {holder}): wait for it, or end it and run again"
        ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    return lock
