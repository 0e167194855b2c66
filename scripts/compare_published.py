"""Rule compare_published: this run beside published figures, with the conditions that differ."""

import sys
from collections.abc import Mapping
from pathlib import Path

from scripts.lib.jobs import run_job
from scripts.lib.launched import flags_of
from scripts.lib.published.compare import published_table, published_text
from scripts.lib.published.data import load_published
from scripts.lib.sweep import load_sweep
from scripts.lib.tables.cells import read_table, write_table


def compare_published(points: Path, config: Mapping, config_dirs: list[str], table: Path) -> None:
    """Write `table` as parquet with .csv and .md beside it, and print the text."""
    folders = [Path(folder) for folder in config_dirs]
    sweep = load_sweep(config, folders)
    studies = load_published(folders)
    found = published_table(studies, read_table(points), lambda server: flags_of(sweep, server))
    write_table(found, table, table.with_suffix(".csv"))
    text = "\n".join(["# Beside published figures", "", *published_text(studies, found)])
    table.with_suffix(".md").write_text(text + "\n", encoding="utf-8")
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(
        run_job(
            lambda: compare_published(
                Path(snakemake.input.points),  # noqa: F821
                snakemake.config,  # noqa: F821
                snakemake.params.config_dirs,  # noqa: F821
                Path(snakemake.output.parquet),  # noqa: F821
            ),
            Path(snakemake.log[0]),  # noqa: F821
        )
    )
