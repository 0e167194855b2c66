"""Rule collect_cells: the evidence of all cells becomes one table of records."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from scripts.lib.collect import collect_records
from scripts.lib.imports import imported_records
from scripts.lib.jobs import run_job
from scripts.lib.tables.cells import records_table
from scripts.lib.tables.others import with_others


def collect_cells(
    folders: Mapping[str, str],
    store: Path,
    infeasible: Sequence[Mapping],
    imports: Mapping[str, Mapping],
    others: Sequence[str],
    parquet: Path,
    processes: int,
) -> None:
    """Read the evidence of all cells, by their paths in `folders` of `store`, add the cells that could not be measured, what
    other tools measured (file: axes) and what other runs collected, and write the table."""
    own = collect_records(folders, store, infeasible, processes)
    for path, axes in imports.items():
        own += imported_records(Path(path), axes)
    with_others(records_table(own), list(map(Path, others))).write_parquet(parquet)


if __name__ == "__main__":
    sys.exit(
        run_job(
            lambda: collect_cells(
                folders=snakemake.params.folders,  # noqa: F821
                store=Path(snakemake.params.store),  # noqa: F821
                infeasible=snakemake.params.infeasible,  # noqa: F821
                imports=dict(zip(snakemake.input.imports, snakemake.params.import_axes, strict=True)),  # noqa: F821
                others=snakemake.input.others,  # noqa: F821
                parquet=Path(snakemake.output.records),  # noqa: F821
                processes=snakemake.threads,  # noqa: F821
            ),
            Path(snakemake.log[0]),  # noqa: F821
        )
    )
