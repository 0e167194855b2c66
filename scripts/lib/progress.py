"""Progress of one run: which boot, which cell i of n, time left. Written by every job, readable by a stranger.

Snakemake's own counter moves only when a whole server's group ends, so serve and measure jobs print their lines themselves.
The run's plan and what is done so far lie in two files named by SPECDEC_PROGRESS; without it lines carry no counts.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

PROGRESS_VARIABLE = "SPECDEC_PROGRESS"


@dataclass(frozen=True)
class Work:
    """What one boot has to do. `share` of the machine's devices that its server keeps for itself: 1 where no other runs
    beside it."""

    cells: tuple[str, ...]
    share: float = 1.0


@dataclass(frozen=True)
class Progress:
    """One run: what it has to do by boot, and how long took what is done. Seconds are wall time: a boot's until it is ready, a
    cell's including its warm-up. `noted`: (what, path) of everything that record was told, in order."""

    plan: Mapping[str, Work]
    boot_seconds: Mapping[str, float]
    cell_seconds: Mapping[str, float]
    noted: tuple[tuple[str, str], ...] = ()

    @property
    def cells(self) -> int:
        return sum(len(work.cells) for work in self.plan.values())

    def seconds_left(self) -> float | None:
        """Mean duration so far x what is left of each boot; None until one boot and one cell are done. Boots share the machine as
        well as they can, and none of them is faster for it."""
        if not self.boot_seconds or not self.cell_seconds:
            return None
        boot_s, cell_s = fmean(self.boot_seconds.values()), fmean(self.cell_seconds.values())
        left = {
            boot: boot_s * (boot not in self.boot_seconds)
            + cell_s * sum(cell not in self.cell_seconds for cell in work.cells)
            for boot, work in self.plan.items()
        }
        together_s = sum(seconds * self.plan[boot].share for boot, seconds in left.items())
        return max(together_s, *left.values())


def begin(path: Path, plan: Mapping[str, Work]) -> None:
    """Write the plan of a run that starts now and forget the previous run's progress."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({boot: asdict(work) for boot, work in plan.items()}), encoding="utf-8")
    _done_path(path).write_text("", encoding="utf-8")
    _closing_path(path).unlink(missing_ok=True)


def cells_of_run(path: Path) -> list[str]:
    """Paths of the cells that the current run set out to measure; empty when no run was begun there."""
    try:
        return [cell for work in _plan(path).values() for cell in work.cells]
    except (OSError, ValueError, TypeError, AttributeError):
        return []


def _plan(path: Path) -> dict[str, Work]:
    plan = json.loads(path.read_text(encoding="utf-8"))
    return {boot: Work(tuple(work["cells"]), work["share"]) for boot, work in plan.items()}


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
        plan = _plan(path)
        lines = [json.loads(line) for line in _done_path(path).read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    done = {(line["what"], line["path"]): line["seconds"] for line in lines}
    boots, cells = (
        {path: seconds for (kind, path), seconds in done.items() if kind == what} for what in ("boot", "cell")
    )
    return Progress(plan, boots, cells, tuple(done))


def number(what: str, path: str) -> str:
    """Note that a boot or a cell begins; which one of the run it is, as ` 3/8`, nothing outside a run. Several may be under way,
    so they are counted as they begin."""
    begins = f"{what} begins"
    counts = record(begins, path, 0.0)
    if counts is None:
        return ""
    begun = [of for noted, of in counts.noted if noted == begins]
    total = len(counts.plan) if what == "boot" else counts.cells
    return f" {begun.index(path) + 1}/{total}"


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


def duration(seconds: float) -> str:
    """12 s, 2 min 05 s, 27 min, 2 h 05 min: fine enough that a line every 15 s differs from the last while one still counts
    seconds, and no finer."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(5 * round(seconds / 5), 60)
    if minutes < 10:
        return f"{minutes} min {rest:02d} s" if rest else f"{minutes} min"
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
