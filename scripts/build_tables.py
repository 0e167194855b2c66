"""Rule build_tables: the tidy table becomes the final tables."""

from pathlib import Path

from scripts.lib.tables.cells import read_cells
from scripts.lib.tables.final import write_final

if __name__ == "__main__":
    write_final(read_cells(Path(snakemake.input.cells)), Path(snakemake.output.failures).parent)  # noqa: F821
