"""Rule collect_cells: the evidence of all cells becomes one table of records."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from scripts.lib.collect import collect_records
from scripts.lib.jobs import run_job
from scripts.lib.tables.cells import records_table


def collect_cells(
    pointers: Sequence[str], infeasible: Sequence[Mapping], parquet: Path, processes: int
) -> None:
    """Read the evidence behind `pointers`, add the cells that could not be measured, write the table."""
    records_table(collect_records(pointers, infeasible, processes)).write_parquet(parquet)


if __name__ == "__main__":
    sys.exit(
        run_job(
            lambda: collect_cells(
                pointers=snakemake.input.pointers,  # noqa: F821
                infeasible=snakemake.params.infeasible,  # noqa: F821
                parquet=Path(snakemake.output.records),  # noqa: F821
                processes=snakemake.threads,  # noqa: F821
            ),
            Path(snakemake.log[0]),  # noqa: F821
        )
    )
