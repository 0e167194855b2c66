"""Measure one cell, or point at the evidence that is already in the store. Run as `exec python -m scripts.measure_cell`.

Heavy imports come after the turn is held: all cells of a boot start at once and wait.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from scripts.lib.cell import Cell
from scripts.lib.endpoint import ServerLost, await_settled, read_endpoint
from scripts.lib.jobs import run_job
from scripts.lib.measuring_spec import MeasureSpec
from scripts.lib.pointer import Pointer
from scripts.lib.store import CellStore, StoreError
from scripts.lib.turns import turn


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=Path, help="file with the cell's MeasureSpec as JSON")
    parser.add_argument("--key", required=True, help="key of the evidence, as planned")
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
    spec = MeasureSpec.from_json(args.spec.read_text(encoding="utf-8"))
    if spec.key != args.key:
        print(f"{args.spec} is of another run's plan; run again", file=sys.stderr)
        return 1
    cell = Cell.from_axes(spec.cell)
    store = CellStore(Path(spec.store))
    try:
        if not store.state(cell, spec.key).finished:
            measure(spec, args.endpoint, cell)
    except (ServerLost, StoreError) as error:
        print(f"{cell.path}: {error}", file=sys.stderr)
        return 1
    pointer = Pointer(cell, spec.key, str(store.folder(cell, spec.key)))
    pointer.write(args.pointer)
    # What rule find_evidence would write if it were asked: of what was just measured it is there for everybody.
    pointer.write(args.pointer.with_name("evidence.json"))
    return 0


def measure(spec: MeasureSpec, path: Path | None, cell: Cell) -> None:
    """Raises ServerLost when there is no server to measure on."""
    if path is None:
        raise ServerLost("its evidence left the store between planning and running; run again")
    endpoint = read_endpoint(path)
    with turn(
        endpoint.meeting(path), cell.turn, endpoint.cells, first=lambda: await_settled(path, endpoint.boot_id)
    ):
        if CellStore(Path(spec.store)).state(cell, spec.key).finished:
            return  # another sweep that shares the store was faster
        from scripts.lib.measuring import Measurer

        Measurer(spec, path, endpoint.boot_id).run()


if __name__ == "__main__":
    sys.exit(main())
