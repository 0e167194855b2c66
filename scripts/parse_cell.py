"""Rule parse_cell: the evidence of one cell becomes its record."""

import json
import sys
from pathlib import Path

from scripts.lib.jobs import run_job
from scripts.lib.record import record_from_pointer


def parse_cell(pointer: Path, record: Path) -> None:
    """Write the record of the cell whose evidence `pointer` names as JSON, whatever became of the cell."""
    text = json.dumps(record_from_pointer(pointer), indent=1, ensure_ascii=False, allow_nan=False)
    record.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(
        run_job(
            lambda: parse_cell(Path(snakemake.input.pointer), Path(snakemake.output.record)),  # noqa: F821
            Path(snakemake.log[0]),  # noqa: F821
        )
    )
