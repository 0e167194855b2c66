"""Rule build_tables: cells and points become the final tables."""

import sys
from pathlib import Path

from scripts.lib.jobs import run_job
from scripts.lib.tables.cells import read_table
from scripts.lib.tables.final import write_final

if __name__ == "__main__":
    sys.exit(
        run_job(
            lambda: write_final(
                read_table(Path(snakemake.input.cells)),  # noqa: F821
                read_table(Path(snakemake.input.points)),  # noqa: F821
                Path(snakemake.output.failures).parent,  # noqa: F821
            ),
            Path(snakemake.log[0]),  # noqa: F821
        )
    )
