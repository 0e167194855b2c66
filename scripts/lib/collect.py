"""Records of a whole sweep, read by as many processes as there are cores."""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from scripts.lib.record import infeasible_record, record_from_pointer

_WORTH_A_POOL = 200
_CHUNK = 50


def collect_records(
    pointers: Sequence[str | Path], infeasible: Sequence[Mapping], processes: int = 1
) -> list[dict[str, object]]:
    """Records of all cells: those with evidence and the infeasible ones ({"cell": axes, "reasons": [...],
    "synthetic": bool})."""
    records = _read(sorted(map(Path, pointers)), processes)
    return records + [
        infeasible_record(cell["cell"], cell["reasons"], cell.get("synthetic", False)) for cell in infeasible
    ]


def _read(paths: Sequence[Path], processes: int) -> list[dict[str, object]]:
    if processes < 2 or len(paths) < _WORTH_A_POOL:
        return [record_from_pointer(path) for path in paths]
    # Forking this process instead would copy polars' locked threads.
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        return list(pool.map(record_from_pointer, paths, chunksize=_CHUNK))
