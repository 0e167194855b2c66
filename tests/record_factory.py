"""Records with chosen values, for tests of what comes after parsing."""

from __future__ import annotations

import polars as pl

from scripts.lib.cell import Cell
from scripts.lib.conduct import CONDUCT_FIELDS
from scripts.lib.metrics import METRICS
from scripts.lib.neighbour import NEIGHBOUR_FIELDS
from scripts.lib.origin import PROVENANCE_FIELDS
from scripts.lib.record import (
    DAMAGED,
    FAILED,
    FAILURE_FIELDS,
    INFEASIBLE,
    MEASURED,
    MISLABELLED,
)
from scripts.lib.server_config import CONFIG_FIELDS
from scripts.lib.tables.cells import cells_table
from scripts.lib.tables.points import points_table


def record(cell: Cell, status: str = MEASURED, **values: object) -> dict[str, object]:
    """A record of `cell` in which everything is None but `values`."""
    names = (
        *FAILURE_FIELDS,
        *METRICS,
        *CONFIG_FIELDS,
        *CONDUCT_FIELDS,
        *NEIGHBOUR_FIELDS,
        *PROVENANCE_FIELDS,
    )
    unknown = set(values) - {*names, "synthetic", "reasons", "absent", "notes"}
    assert not unknown, unknown
    blank = dict.fromkeys(names) | {"synthetic": False, "reasons": [], "absent": [], "notes": []}
    return {**cell.axes, "status": status, **blank, **values}


def measured(cell: Cell, tps: float, requests: int | None = None, **values: object) -> dict[str, object]:
    """A complete measurement that nothing speaks against; `tps` is the total throughput, shared by the cell's
    concurrent requests."""
    requests = requests or max(8, 5 * cell.concurrency)
    counts = {"requests": requests, "completed": requests, "failed": 0}
    counts |= {"completion_tokens": 64 * requests, "wall_s": 60.0}
    rates = {"aggregate_tps": tps, "per_request_tps": tps / cell.concurrency}
    return record(cell, MEASURED, **(counts | rates | values))


def mislabelled(cell: Cell, tps: float, **values: object) -> dict[str, object]:
    """A complete measurement of a server that ran with k 1, whatever the row says."""
    words = f"k: asked {cell.server.k}, the server resolved 1"
    known = {
        "status": MISLABELLED,
        "failure_class": MISLABELLED,
        "failure_cause": words,
        "failure_root_line": "num_spec_tokens=1",
        "failure_fix": "correct the server",
        "reasons": [f"{words} (server log line 7: num_spec_tokens=1)"],
        "log": f"store/{cell.path}/0123456789abcdef/server.log.gz",
    }
    return measured(cell, tps, **values) | known


def failed(cell: Cell, **values: object) -> dict[str, object]:
    """A server that ran out of memory at start."""
    known = {
        "failure_class": "resource_start",
        "failure_cause": "no memory is left for the KV cache",
        "failure_root_line": "ValueError: No available memory for the cache blocks.",
        "failure_fix": "raise gpu_memory_utilization or use a smaller drafter",
        "failure_phase": "startup",
        "failure_process": "EngineCore",
        "log": f"resources/store/{cell.path}/0123456789abcdef/server.log.gz",
    }
    return record(cell, FAILED, **(known | values))


def damaged(cell: Cell) -> dict[str, object]:
    return record(cell, DAMAGED, reasons=["requests.jsonl does not match its checksum. Run again"])


def infeasible(cell: Cell) -> dict[str, object]:
    return record(
        cell, INFEASIBLE, reasons=["k 3 must be a multiple of the 2 heads of this model's mtp module"]
    )


def points_of(records: list[dict[str, object]]) -> pl.DataFrame:
    """The points table of these records."""
    return points_table(cells_table(records))
