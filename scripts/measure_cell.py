"""Measure one cell, or point at the evidence that is already in the store. Run as `exec python -m scripts.measure_cell`.

Heavy imports come after the turn is held: all cells of a boot start at once and wait.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path

from scripts.lib.cell import Cell
from scripts.lib.endpoint import ServerLost, await_settled, read_endpoint
from scripts.lib.jobs import run_job
from scripts.lib.store import CellStore, StoreError
from scripts.lib.turns import turn


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=json.loads, help="the cell's MeasureSpec as JSON")
    parser.add_argument(
        "--pointer", required=True, type=Path, help="file that will say where the evidence lies"
    )
    parser.add_argument("--log", required=True, type=Path, help="file for a traceback")
    parser.add_argument(
        "endpoint", nargs="?", type=Path, help="the boot's endpoint.json; none for a finished cell"
    )
    args = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
    return run_job(lambda: work(args), args.log)


def work(args: argparse.Namespace) -> int:
    cell, key = Cell.from_axes(args.spec["cell"]), args.spec["key"]
    store = CellStore(Path(args.spec["store"]))
    try:
        if not store.state(cell, key).finished:
            measure(args.spec, args.endpoint, cell)
    except (ServerLost, StoreError) as error:
        print(f"{cell.path}: {error}", file=sys.stderr)
        return 1
    pointer = {"cell": cell.axes, "key": key, "folder": str(store.folder(cell, key))}
    args.pointer.parent.mkdir(parents=True, exist_ok=True)
    args.pointer.write_text(json.dumps(pointer, indent=1) + "\n", encoding="utf-8")
    return 0


def measure(spec: dict, path: Path | None, cell: Cell) -> None:
    """Raises ServerLost when there is no server to measure on."""
    if path is None:
        raise ServerLost("its evidence left the store between planning and running; run again")
    endpoint = read_endpoint(path)
    with turn(
        endpoint.meeting(path), cell.turn, endpoint.cells, first=lambda: await_settled(path, endpoint.boot_id)
    ):
        if CellStore(Path(spec["store"])).state(cell, spec["key"]).finished:
            return  # another sweep that shares the store was faster
        from scripts.lib.measuring import Measurer
        from scripts.lib.measuring_spec import MeasureSpec

        Measurer(MeasureSpec(**spec), path, endpoint.boot_id).run()


if __name__ == "__main__":
    sys.exit(main())
