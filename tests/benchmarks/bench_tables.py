"""How long collecting takes: `python -m tests.benchmarks.bench_tables [CELLS] [PROCESSES]` (10000 and 2).

Generates evidence of invented measurements in a temporary folder, eight cells to a boot, each log holding the
cells before it, then prints seconds and peak memory of collecting, of the cells table and of the final
tables."""

from __future__ import annotations

import itertools
import resource
import sys
import tempfile
import time
from pathlib import Path

from scripts.lib.cell import Cell
from scripts.lib.collect import collect_records
from scripts.lib.tables.cells import cells_table, write_table
from scripts.lib.tables.final import write_final
from scripts.lib.tables.points import points_table
from tests.evidence_factory import Truth, cell, window_log, write_evidence

CONCURRENCIES = (1, 2, 4, 8)
SCENARIOS = ("chat", "code")
METHODS = [("none", 0), *(("mtp", k) for k in (1, 2, 3)), *(("ngram", k) for k in (1, 2, 3, 4))]


def boots() -> itertools.count:
    """Servers without end: all methods at one max_model_len, then the next length."""
    for length in itertools.count(1024, 16):
        for method, k in METHODS:
            yield method, k, length


def truth_of(subject: Cell, earlier: str) -> Truth:
    k, requests = subject.server.k, max(8, 5 * subject.concurrency)
    positions = tuple(0.6 ** (n + 1) for n in range(k)) or None
    drafts = int(requests * 127 / (1 + sum(positions or ())))
    return Truth(requests=requests, tokens=128, positions=positions, drafts=drafts, earlier_log=earlier)


def generate(root: Path, count: int) -> dict[str, str]:
    """Evidence of `count` cells: folders by the cells' paths."""
    folders: dict[str, str] = {}
    for method, k, length in boots():
        earlier = ""
        for scenario, concurrency in itertools.product(SCENARIOS, CONCURRENCIES):
            if len(folders) == count:
                return folders
            subject = cell(method, k, concurrency, length, scenario)
            truth = truth_of(subject, earlier)
            folders[subject.path] = str(write_evidence(root / "store", subject, truth))
            earlier += window_log(subject, truth)
    return folders


def timed(name: str, began: float) -> float:
    print(f"{name:<22}{time.perf_counter() - began:8.1f} s", flush=True)
    return time.perf_counter()


def main(count: int, processes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        began = time.perf_counter()
        folders = generate(root, count)
        size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
        began = timed(f"generate {count}", began)
        records = collect_records(folders, root / "store", [], processes)
        began = timed(f"read, {processes} processes", began)
        cells = cells_table(records)
        write_table(cells, root / "cells.parquet", root / "cells.csv")
        began = timed("cells table", began)
        points = points_table(cells)
        write_table(points, root / "points.parquet", root / "points.csv")
        began = timed(f"{len(points)} points", began)
        write_final(cells, points, root / "tables")
        timed("final tables", began)
        peak = max(
            resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        )
        statuses = dict(cells["status"].value_counts().rows())
        print(f"evidence {size / 2**20:.0f} MiB, peak memory of a process {peak / 1024:.0f} MiB, {statuses}")


if __name__ == "__main__":
    main(*(int(text) for text in [*sys.argv[1:], *("10000", "2")[len(sys.argv) - 1 :]]))
