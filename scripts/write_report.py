"""Rule write_report: tables, plots and recommendation become one page that needs nothing else."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from scripts.lib.jobs import run_job
from scripts.lib.launched import launch_of
from scripts.lib.report.page import Picture, Results, render
from scripts.lib.report.pictures import caption, embedded
from scripts.lib.sweep import load_sweep
from scripts.lib.tables.cells import read_table

TABLES = ("cells", "points", "analysis", "outputs", "recommendation")


def write_report(
    tables: Mapping[str, Path],
    svgs: Sequence[Path],
    captions: Sequence[Path],
    config: tuple[Mapping, list[str]],
    page: Path,
) -> None:
    """Write `page`. `tables`: those of Results and the recommendation; `svgs` and `captions` in the order of the page; `config` with
    the folders of the files it names."""
    sweep = load_sweep(config[0], [Path(folder) for folder in config[1]])
    recommendation = json.loads(tables["recommendation"].read_text(encoding="utf-8"))
    frames = {name: read_table(path) for name, path in tables.items() if name != "recommendation"}
    results = Results(**frames, recommendation=recommendation)
    pictures = [
        Picture(svg.stem, embedded(_text(svg), svg.stem), caption(_text(words)))
        for svg, words in zip(svgs, captions, strict=True)
    ]
    page.write_text(render(results, pictures, lambda server: launch_of(sweep, server)), encoding="utf-8")


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(
        run_job(
            lambda: write_report(
                {name: Path(snakemake.input[name]) for name in TABLES},  # noqa: F821
                [Path(svg) for svg in snakemake.input.svg],  # noqa: F821
                [Path(caption) for caption in snakemake.input.captions],  # noqa: F821
                (snakemake.config, snakemake.params.config_dirs),  # noqa: F821
                Path(snakemake.output.page),  # noqa: F821
            ),
            Path(snakemake.log[0]),  # noqa: F821
        )
    )
