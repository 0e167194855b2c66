"""Rule verify_schedule: the measured schedule of k against what it was derived from, in a table and on the console."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from scripts.lib.collect import collect_records
from scripts.lib.deploy.promise import promise_table, promise_text
from scripts.lib.deploy.scheduled import read_scheduled, to_json
from scripts.lib.jobs import run_job
from scripts.lib.tables.cells import judged, read_table, records_table, write_table
from scripts.lib.tables.points import points_table

CHANGED = (
    "The schedule has just been derived, so nothing of it is measured yet: run the same command once more."
)


def verify_schedule(schedule: Path, sweep_records: Path, planned: Mapping, parquet: Path) -> int:
    """Write and print the comparison. `planned` is what this run was planned with: the schedules, where the evidence of
    their cells lies, infeasible cells, limits of validity and tolerance. Returns 1 when the schedule is another one by now."""
    schedules = read_scheduled(schedule)
    if json.loads(json.dumps(to_json(schedules))) != json.loads(json.dumps(planned["schedules"])):
        print(CHANGED, flush=True)
        return 1
    own = records_table(collect_records(planned["folders"], Path(planned["store"]), planned["infeasible"]))
    cells = judged(pl.concat([read_table(sweep_records), own]), planned["limits"])
    table = promise_table(points_table(cells), schedules, planned["tolerance"])
    notes = json.loads(schedule.read_text(encoding="utf-8"))["notes"]
    text = "\n".join(promise_text(table, notes))
    write_table(table, parquet, parquet.with_suffix(".csv"))
    parquet.with_suffix(".md").write_text(text + "\n", encoding="utf-8")
    print(text, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(
        run_job(
            lambda: verify_schedule(
                Path(snakemake.input.schedule),  # noqa: F821
                Path(snakemake.input.records),  # noqa: F821
                snakemake.params.planned,  # noqa: F821
                Path(snakemake.output.parquet),  # noqa: F821
            ),
            Path(snakemake.log[0]),  # noqa: F821
        )
    )
