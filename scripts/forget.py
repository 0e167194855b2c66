"""Set the evidence of cells aside, so that the next run measures them again:

    python -m scripts.forget results/cells/.../evidence.json ...

Nothing is deleted: the evidence stays beside the new one as an earlier attempt.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.lib.pointer import Pointer
from scripts.lib.store import CellStore


def forget(pointer: Path) -> str:
    """Forget the evidence that `pointer` names; says what was done. Raises ValueError for a file that is no pointer."""
    if not pointer.exists():
        raise ValueError(
            f"there is no {pointer}; a finished cell gets it with: snakemake --cores 1 {pointer}"
        )
    found = Pointer.read(pointer)
    root = found.folder_from(pointer).parents[len(Path(found.cell.path).parts)]
    done = CellStore(root).forget(found.cell, found.key)
    return f"{found.cell.path}: {'will be measured again' if done else 'had no evidence'}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pointer", nargs="+", type=Path, help="evidence.json of a cell")
    status = 0
    for pointer in parser.parse_args().pointer:
        try:
            print(forget(pointer))
        except ValueError as error:
            print(f"error: {error}", file=sys.stderr)
            status = 2
    return status


if __name__ == "__main__":
    sys.exit(main())
