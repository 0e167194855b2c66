"""Rule summarize: print the main table and where the rest lies; fail when cells failed or are mislabelled and that
is not allowed."""

import sys
from pathlib import Path

from scripts.lib import progress
from scripts.lib.jobs import run_job
from scripts.lib.tables.cells import read_table
from scripts.lib.tables.failures import closing_words
from scripts.lib.tables.final import summary_lines


def summarize(cells_path: Path, points_path: Path, outputs: Path, summary: Path, allow_failures: bool) -> int:
    """Print the summary; returns 1 and leaves no file when cells failed or are mislabelled and that is not
    allowed."""
    cells = read_table(cells_path)
    text = "\n".join(["", *summary_lines(cells, read_table(points_path), outputs=read_table(outputs))])
    print(text, flush=True)
    lost = closing_words(cells)
    if lost and not allow_failures:
        progress.conclude(f"{lost}: read results/tables/failures.md")
        return 1
    summary.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(
        run_job(
            lambda: summarize(
                Path(snakemake.input.cells),  # noqa: F821
                Path(snakemake.input.points),  # noqa: F821
                Path(snakemake.input.outputs),  # noqa: F821
                Path(snakemake.output.summary),  # noqa: F821
                snakemake.params.allow_failures,  # noqa: F821
            ),
            Path(snakemake.log[0]),  # noqa: F821
        )
    )
