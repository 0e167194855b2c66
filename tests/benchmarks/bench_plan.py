"""What planning costs: `python -m tests.benchmarks.bench_plan [CELLS]` (1000).

In a temporary folder: a dry run of CELLS pending cells; then, with invented evidence of them all in the store, the run after
`rm -r results`, one with nothing to do, one with --forceall, and a dry run with one more concurrency. No server is started. Prints seconds.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import yaml

from scripts.lib.planning import Plan
from scripts.lib.sweep import load_sweep
from tests.benchmarks.bench_tables import truth_of
from tests.evidence_factory import window_log, write_evidence
from tests.workflow.project import Project

CONCURRENCIES = [1, 2, 3, 4, 5, 6, 7, 8]
METHODS = [{"name": "none"}, {"name": "mtp", "k": [1, 2, 3]}]


def matrix(cells: int) -> dict:
    lengths = -(-cells // (4 * len(CONCURRENCIES)))
    return {
        "method": METHODS,
        "concurrency": CONCURRENCIES,
        "max_model_len": [1024 + n for n in range(lengths)],
    }


def fill_store(project: Project) -> int:
    """Evidence of every cell of the project, each log with the cells before it on its boot. Returns how many MiB."""
    os.chdir(project.folder)  # identities leave out the working directory
    config = yaml.safe_load((project.folder / "config/config.yaml").read_text())
    sweep = load_sweep(config, [project.folder / "config"])
    plan = Plan(sweep, "results/cells")
    earlier: dict[object, str] = {}
    for cell in sweep.cells:
        truth = truth_of(cell, earlier.get(cell.boot, ""))
        write_evidence(project.folder / "store", cell, truth, identity=plan.identity(cell))
        earlier[cell.boot] = earlier.get(cell.boot, "") + window_log(cell, truth)
    return sum(p.stat().st_size for p in (project.folder / "store").rglob("*") if p.is_file()) // 2**20


def timed(name: str, project: Project, *arguments: str) -> str:
    began = time.perf_counter()
    output = project.run(*arguments, status=None, limit_s=3600)
    print(f"{name:<44}{time.perf_counter() - began:8.1f} s", flush=True)
    assert not project.starts
    return output


def main(cells: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder), matrix(cells))
        timed(f"dry run, {cells} cells pending", project, "-n", "--quiet", "all")
        print(f"evidence: {fill_store(project)} MiB", flush=True)
        timed("all finished, no results/", project)
        timed("again, nothing to do", project)
        time.sleep(3)  # evidence that was written just now gets no receipt
        timed("--forceall", project, "--forceall")
        shutil.rmtree(project.folder / "results")
        timed("results/ deleted", project)
        project.save(concurrency=[*CONCURRENCIES, 9])
        timed("dry run, one more concurrency", project, "-n", "--quiet", "all")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
