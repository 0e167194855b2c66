"""Rule find_evidence: a file that says where the evidence of one cell lies."""

import sys
from pathlib import Path

from scripts.lib.cell import Cell
from scripts.lib.jobs import run_job
from scripts.lib.pointer import Pointer


def find_evidence(cell: str, key: str, folder: str, pointer: Path) -> None:
    """Write to `pointer` that the evidence of `cell` (its path) lies in `folder`."""
    Pointer(Cell.from_path(cell), key, folder).write(pointer)


if __name__ == "__main__":
    sys.exit(
        run_job(
            lambda: find_evidence(
                cell=snakemake.params.cell,  # noqa: F821
                key=snakemake.params.key,  # noqa: F821
                folder=snakemake.params.folder,  # noqa: F821
                pointer=Path(snakemake.output.pointer),  # noqa: F821
            ),
            Path(snakemake.log[0]),  # noqa: F821
        )
    )
