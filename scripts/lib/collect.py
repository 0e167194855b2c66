"""Records of a whole sweep, read by as many processes as there are cores."""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from scripts.lib.cell import Cell
from scripts.lib.receipts import fingerprint, note_receipts, settled
from scripts.lib.record import DAMAGED, Record, infeasible_record, record_from_evidence

_WORTH_A_POOL = 200
_CHUNK = 50


def collect_records(
    folders: Mapping[str, str], store: Path, infeasible: Sequence[Mapping], processes: int = 1
) -> list[Record]:
    """Records of all cells: those with evidence, by their paths, and the infeasible ones ({"cell": axes, "reasons": [...],
    "synthetic": bool}).

    Every byte is verified on the way, and the receipts in `store` say so to later plans.
    """
    read = _read(sorted(folders.items()), processes)
    names = {path: f"{path}/{Path(folder).name}" for path, folder in folders.items()}
    whole = {names[path]: mark for path, _, mark in read if mark is not None}
    damaged = [names[path] for path, record, _ in read if record["status"] == DAMAGED]
    note_receipts(store, whole, damaged)
    records = [record for _, record, _ in read]
    return records + [
        infeasible_record(cell["cell"], cell["reasons"], cell.get("synthetic", False)) for cell in infeasible
    ]


def _read(cells: Sequence[tuple[str, str]], processes: int) -> list[tuple[str, Record, str | None]]:
    if processes < 2 or len(cells) < _WORTH_A_POOL:
        return [_read_one(cell) for cell in cells]
    # Forking this process instead would copy polars' locked threads.
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        return list(pool.map(_read_one, cells, chunksize=_CHUNK))


def _read_one(cell: tuple[str, str]) -> tuple[str, Record, str | None]:
    """The cell's path, its record and, for whole evidence that nobody touched lately, its fingerprint before it was read."""
    path, folder = cell[0], Path(cell[1])
    before = fingerprint(folder)
    before = before if settled(folder) else None
    record = record_from_evidence(folder, Cell.from_path(path))
    return path, record, None if record["status"] == DAMAGED else before
