"""Rule build_deployment: the recommended servers become a compose file, a start script and a schedule of k."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from scripts.lib.deploy.build import build_deployment
from scripts.lib.jobs import run_job
from scripts.lib.recommend.candidates import operating_points
from scripts.lib.recommend.wishes import read_wishes
from scripts.lib.sweep import load_sweep
from scripts.lib.tables.cells import read_table


def write_deployment(
    recommendation: Path, points: Path, config: Mapping, config_dirs: list[str], folder: Path
) -> None:
    """Write the files of the deployment into `folder`."""
    sweep = load_sweep(config, [Path(name) for name in config_dirs])
    deployment = build_deployment(
        json.loads(recommendation.read_text(encoding="utf-8")),
        operating_points(read_table(points)),
        sweep,
        read_wishes(sweep.config["recommend"]),
    )
    for name, text in deployment.files.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(
        run_job(
            lambda: write_deployment(
                Path(snakemake.input.recommendation),  # noqa: F821
                Path(snakemake.input.points),  # noqa: F821
                snakemake.config,  # noqa: F821
                snakemake.params.config_dirs,  # noqa: F821
                Path(snakemake.output.compose).parent,  # noqa: F821
            ),
            Path(snakemake.log[0]),  # noqa: F821
        )
    )
