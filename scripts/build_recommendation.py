"""Rule build_recommendation: points and wishes become the best choice at each operating point and a plan for the traffic."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from scripts.lib.jobs import run_job
from scripts.lib.launched import devices_of
from scripts.lib.recommend.answer import answer
from scripts.lib.recommend.build import recommend
from scripts.lib.recommend.wishes import read_wishes
from scripts.lib.sweep import load_sweep
from scripts.lib.tables.cells import read_table, write_table


def build_recommendation(
    points: Path, config: Mapping, config_dirs: list[str], table: Path, machine: Path
) -> None:
    """Write `table` as parquet with .csv and .md beside it, and everything as JSON to `machine`; print the answer."""
    sweep = load_sweep(config, [Path(folder) for folder in config_dirs])
    wishes = read_wishes(sweep.config["recommend"])
    found = recommend(read_table(points), wishes, lambda server: devices_of(sweep, server))
    write_table(found.table, table, table.with_suffix(".csv"))
    table.with_suffix(".md").write_text("\n".join(found.text) + "\n", encoding="utf-8")
    text = json.dumps(found.as_json, indent=1, ensure_ascii=False, allow_nan=False)
    machine.write_text(text + "\n", encoding="utf-8")
    print("", *answer(found.choices), f"Read {table.with_suffix('.md')}", sep="\n", flush=True)


if __name__ == "__main__":
    sys.exit(
        run_job(
            lambda: build_recommendation(
                Path(snakemake.input.points),  # noqa: F821
                snakemake.config,  # noqa: F821
                snakemake.params.config_dirs,  # noqa: F821
                Path(snakemake.output.parquet),  # noqa: F821
                Path(snakemake.output.json),  # noqa: F821
            ),
            Path(snakemake.log[0]),  # noqa: F821
        )
    )
