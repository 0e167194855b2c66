"""Rule draw_plots: every plot of the catalogue from the points table, each as html, svg and png."""

import sys
from pathlib import Path

from scripts.lib.jobs import run_job
from scripts.lib.plots.catalogue import DRAW
from scripts.lib.plots.files import write_plot
from scripts.lib.tables.cells import read_table


def draw_plots(points: Path, folder: Path) -> None:
    """Write {folder}/{name}.{html,svg,png} for every plot."""
    folder.mkdir(parents=True, exist_ok=True)
    table = read_table(points)
    for name, draw in DRAW.items():
        write_plot(draw(table), folder / name)


if __name__ == "__main__":
    sys.exit(
        run_job(
            lambda: draw_plots(
                Path(snakemake.input.points),  # noqa: F821
                Path(snakemake.output.html[0]).parent,  # noqa: F821
            ),
            Path(snakemake.log[0]),  # noqa: F821
        )
    )
