"""Rule build_analysis: what each speed-up is made of, and what share of the machine's limit was reached."""

import sys
from collections.abc import Mapping
from pathlib import Path

from scripts.lib.analysis.table import analysis_table, analysis_text
from scripts.lib.jobs import run_job
from scripts.lib.launched import facts_of
from scripts.lib.sweep import load_sweep
from scripts.lib.tables.cells import read_table, write_table


def build_analysis(points: Path, config: Mapping, config_dirs: list[str], table: Path) -> None:
    """Write `table` as parquet with .csv and .md beside it."""
    sweep = load_sweep(config, [Path(folder) for folder in config_dirs])
    found = analysis_table(read_table(points), lambda server: facts_of(sweep, server))
    write_table(found, table, table.with_suffix(".csv"))
    text = "\n".join(["# Why it is that fast", "", *analysis_text(found)])
    table.with_suffix(".md").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(
        run_job(
            lambda: build_analysis(
                Path(snakemake.input.points),  # noqa: F821
                snakemake.config,  # noqa: F821
                snakemake.params.config_dirs,  # noqa: F821
                Path(snakemake.output.parquet),  # noqa: F821
            ),
            Path(snakemake.log[0]),  # noqa: F821
        )
    )
