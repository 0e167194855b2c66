"""Helpers for tests that start and kill processes. Only processes found by a marker that the test itself chose are touched."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path


def wait_for(condition: Callable[[], object], limit_s: float = 10.0, what: str = "the condition") -> float:
    """Wait until `condition()` is true; returns the seconds it took and fails the test after `limit_s`."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < limit_s, f"waited {limit_s} s in vain for {what}"
        time.sleep(0.02)
    return time.monotonic() - began


def running_with(marker: str) -> list[int]:
    """Pids of live processes (no zombies) whose command line or environment contains `marker`, this one excepted."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            seen = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
            state = (folder / "stat").read_bytes().rpartition(b")")[2].split()[0]
        except OSError:
            continue
        if marker.encode() in seen and state not in (b"Z", b"X"):
            found.append(int(folder.name))
    return found
