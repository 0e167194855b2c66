"""Rule compare_cells: cells become points, each over its repeats and compared with the baseline."""

import sys
from pathlib import Path

from scripts.lib.jobs import run_job
from scripts.lib.tables.cells import read_table, write_table
from scripts.lib.tables.points import points_table


def compare_cells(cells: Path, parquet: Path, csv: Path) -> None:
    """Summarize the repeats of every point; write the table twice."""
    write_table(points_table(read_table(cells)), parquet, csv)


if __name__ == "__main__":
    sys.exit(
        run_job(
            lambda: compare_cells(
                Path(snakemake.input.cells),  # noqa: F821
                Path(snakemake.output.parquet),  # noqa: F821
                Path(snakemake.output.csv),  # noqa: F821
            ),
            Path(snakemake.log[0]),  # noqa: F821
        )
    )
