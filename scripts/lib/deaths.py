"""Which cells a boot's server died under, noted by the cells themselves in the folder where they meet."""

from __future__ import annotations

import json
from pathlib import Path

from scripts.lib.cell import Cell
from scripts.lib.endpoint import Failure

_FILE = "deaths.jsonl"


def note(meeting: Path, cell: Cell, failure: Failure) -> None:
    """Tell the boot's later cells that the server died under `cell`."""
    death = {
        "scenario": cell.scenario,
        "concurrency": cell.concurrency,
        "failure_class": failure.failure_class,
    }
    with (meeting / _FILE).open("a", encoding="utf-8") as file:
        file.write(json.dumps(death) + "\n")


def too_much_for(meeting: Path, cell: Cell) -> int | None:
    """The concurrency, no higher than the cell's, at which the server ran out of something under the same scenario; None when
    it did not. Another scenario's requests are of another size and prove nothing."""
    try:
        lines = (meeting / _FILE).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    loads = [
        death["concurrency"]
        for death in map(json.loads, lines)
        if death["failure_class"] == "resource_runtime"
        and death["scenario"] == cell.scenario
        and death["concurrency"] <= cell.concurrency
    ]
    return min(loads, default=None)
