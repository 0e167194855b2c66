"""Progress of one run: which boot, which cell i of n, time left. Written by every job, readable by a stranger.

Snakemake's own counter moves only when a whole server's group ends, so serve and measure jobs print their lines themselves.
The run's plan and what is done so far lie in two files named by SPECDEC_PROGRESS; without it lines carry no counts.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

PROGRESS_VARIABLE = "SPECDEC_PROGRESS"


@dataclass(frozen=True)
class Progress:
    """Counts of one run. Seconds are wall time: a boot's until it is ready, a cell's including its warm-up."""

    boots: int
    cells: int
    boot_seconds: tuple[float, ...]
    cell_seconds: tuple[float, ...]

    def seconds_left(self) -> float | None:
        """Mean duration so far x what is left; None until one boot and one cell are done."""
        if not self.boot_seconds or not self.cell_seconds:
            return None
        boots_left = max(0, self.boots - len(self.boot_seconds))
        cells_left = max(0, self.cells - len(self.cell_seconds))
        return boots_left * fmean(self.boot_seconds) + cells_left * fmean(self.cell_seconds)


def begin(path: Path, boots: Iterable[str], cells: Iterable[str]) -> None:
    """Write the plan of a run that starts now and forget the previous run's progress."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"boots": sorted(boots), "cells": sorted(cells)}), encoding="utf-8")
    _done_path(path).write_text("", encoding="utf-8")
    _closing_path(path).unlink(missing_ok=True)


def cells_of_run(path: Path) -> list[str]:
    """Paths of the cells that the current run set out to measure; empty when no run was begun there."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError, KeyError):
        return []


def conclude(text: str) -> None:
    """Leave the line that the run shall end with."""
    name = os.environ.get(PROGRESS_VARIABLE)
    if name:
        _closing_path(Path(name)).write_text(text, encoding="utf-8")


def closing_line(path: Path) -> str:
    """The last line of a run that did not succeed."""
    try:
        return _closing_path(path).read_text(encoding="utf-8")
    except OSError:
        return (
            "This run did not finish; the reason is above. What was measured is kept: "
            "the next run measures only the rest."
        )


def read(path: Path) -> Progress | None:
    """The progress of the current run, None when no run was begun there or the files are unreadable."""
    try:
        plan = json.loads(path.read_text(encoding="utf-8"))
        lines = [json.loads(line) for line in _done_path(path).read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError):
        return None
    done = {(line["what"], line["path"]): line["seconds"] for line in lines}
    return Progress(
        len(plan["boots"]),
        len(plan["cells"]),
        tuple(seconds for (what, _), seconds in done.items() if what == "boot"),
        tuple(seconds for (what, _), seconds in done.items() if what == "cell"),
    )


def record(what: str, path: str, seconds: float) -> Progress | None:
    """Note that a boot or a cell is done and return where the run stands. One short append is atomic on POSIX."""
    name = os.environ.get(PROGRESS_VARIABLE)
    if not name:
        return None
    try:
        with _done_path(Path(name)).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"what": what, "path": path, "seconds": round(seconds, 2)}) + "\n")
    except OSError:
        return None
    return read(Path(name))


def current() -> Progress | None:
    name = os.environ.get(PROGRESS_VARIABLE)
    return read(Path(name)) if name else None


def duration(seconds: float) -> str:
    """12 s, 4 min, 2 h 05 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def time_left(progress: Progress | None) -> str:
    left = progress.seconds_left() if progress else None
    return "" if left is None else f"; about {duration(left)} left" if left >= 1 else "; none left"


def say(text: str) -> None:
    """One line on the console, with the time of day; flushed, since several jobs share the console."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')}  {text}\n")
    sys.stderr.flush()


def repeat(line: str) -> None:
    """A line that another process has said, time of day included."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _done_path(path: Path) -> Path:
    return path.with_suffix(".done.jsonl")


def _closing_path(path: Path) -> Path:
    return path.with_suffix(".closing.txt")
