"""Rule compare_outputs: the answers of every method against those of the baseline."""

import sys
from pathlib import Path

from scripts.lib.jobs import run_job
from scripts.lib.tables.cells import read_table, write_table
from scripts.lib.tables.outputs import outputs_table, outputs_text, warnings


def compare_outputs(cells: Path, parquet: Path, csv: Path, text: Path) -> None:
    """Write the table three times and print what is unusual."""
    table = outputs_table(read_table(cells))
    write_table(table, parquet, csv)
    lines = ["# Are the answers the same?", "", *outputs_text(table)]
    text.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for warning in warnings(table):
        print(f"warning: {warning}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(
        run_job(
            lambda: compare_outputs(
                Path(snakemake.input.cells),  # noqa: F821
                Path(snakemake.output.parquet),  # noqa: F821
                Path(snakemake.output.csv),  # noqa: F821
                Path(snakemake.output.text),  # noqa: F821
            ),
            Path(snakemake.log[0]),  # noqa: F821
        )
    )
