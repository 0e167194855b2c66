"""Rule judge_cells: records become the tidy table of cells, each with its validity."""

import sys
from pathlib import Path

from scripts.lib.jobs import run_job
from scripts.lib.tables.cells import judged, read_table, write_table
from scripts.lib.validity import Limits


def judge_cells(records: Path, limits: Limits, parquet: Path, csv: Path) -> None:
    """Judge every record by `limits` and set it against its baseline; write the table twice."""
    write_table(judged(read_table(records), limits), parquet, csv)


if __name__ == "__main__":
    sys.exit(
        run_job(
            lambda: judge_cells(
                Path(snakemake.input.records),  # noqa: F821
                snakemake.params.limits,  # noqa: F821
                Path(snakemake.output.parquet),  # noqa: F821
                Path(snakemake.output.csv),  # noqa: F821
            ),
            Path(snakemake.log[0]),  # noqa: F821
        )
    )
