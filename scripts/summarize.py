"""Rule summarize: print the main table and where the rest lies; fail when cells failed and that is not allowed."""

import sys
from pathlib import Path

from scripts.lib import progress
from scripts.lib.tables.cells import read_cells
from scripts.lib.tables.failures import failed
from scripts.lib.tables.final import summary_lines

if __name__ == "__main__":
    cells = read_cells(Path(snakemake.input.cells))  # noqa: F821
    text = "\n".join(["", *summary_lines(cells)])
    print(text, flush=True)
    lost = len(failed(cells))
    if lost and not snakemake.params.allow_failures:  # noqa: F821
        progress.conclude(f"{lost} of {len(cells)} cells failed: read results/tables/failures.md")
        sys.exit(1)
    Path(snakemake.output.summary).write_text(text + "\n", encoding="utf-8")  # noqa: F821
