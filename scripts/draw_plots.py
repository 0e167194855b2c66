"""Rule draw_plots: every plot of the catalogue from the points table, each as html, svg and png."""

import sys
from collections.abc import Mapping
from pathlib import Path

from scripts.lib.jobs import run_job
from scripts.lib.launched import devices_of
from scripts.lib.plots.catalogue import DRAW
from scripts.lib.plots.files import write_plot
from scripts.lib.plots.names import TITLES
from scripts.lib.plots.servers import with_devices
from scripts.lib.sweep import load_sweep
from scripts.lib.tables.cells import read_table


def draw_plots(points: Path, config: Mapping, config_dirs: list[str], folder: Path) -> None:
    """Write {folder}/{name}.{html,svg,png} for every plot."""
    sweep = load_sweep(config, [Path(name) for name in config_dirs])
    table = with_devices(read_table(points), lambda server: devices_of(sweep, server))
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in DRAW.items():
        write_plot(draw(table), folder / name, TITLES[name])


if __name__ == "__main__":
    sys.exit(
        run_job(
            lambda: draw_plots(
                Path(snakemake.input.points),  # noqa: F821
                snakemake.config,  # noqa: F821
                snakemake.params.config_dirs,  # noqa: F821
                Path(snakemake.output.html[0]).parent,  # noqa: F821
            ),
            Path(snakemake.log[0]),  # noqa: F821
        )
    )
