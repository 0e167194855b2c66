"""The scratch project of the workflow tests, run with profiles/slurm on a test cluster."""

from __future__ import annotations

from pathlib import Path

from tests.slurm.cluster import Cluster
from tests.workflow.project import ROOT, Project

MATRIX = {"hardware": ["h100", "gb200"]}


class SlurmProject(Project):
    """Two hardware names, each a partition with one GPU of that type."""

    def __init__(self, folder: Path, cluster: Cluster, **matrix: object):
        self.cluster = cluster
        self.earlier_jobs = set(cluster.jobs())
        super().__init__(folder, MATRIX | matrix)
        self.hardware()

    def hardware(self) -> None:
        """(Re)write the hardware files, one for each node."""
        for node in self.cluster.nodes:
            slurm = {
                "partition": node.name, "gres": f"gpu:{node.name}", "constraint": node.constraint, "account": "lab", "cpus": 4, "mem_mb": 8000,
            }  # fmt: skip
            self.write(
                f"config/hardware/{node.name}.yaml",
                {"description": "one node", "nvml_name": node.name, "slurm": slurm},
            )

    @property
    def environment(self) -> dict[str, str]:
        return super().environment | self.cluster.environment | {"MARKER": self.marker}

    def command(self, *arguments: str) -> list[str]:
        python, minus_m, snakemake, *_ = super().command()
        profiles = [f"--profile={ROOT / 'profiles/slurm'}", f"--workflow-profile={ROOT / 'profiles/default'}"]
        # Only to be told sooner: the queue is asked every second, and files are on this machine's own disk.
        sooner = ["--slurm-init-seconds-before-status-checks=1", "--latency-wait=10"]
        return [
            python,
            minus_m,
            snakemake,
            f"--snakefile={ROOT / 'Snakefile'}",
            *profiles,
            *sooner,
            *arguments,
        ]

    @property
    def jobs(self) -> dict[str, dict[str, str]]:
        """This project's jobs in the queue, finished ones included."""
        return {job: row for job, row in self.cluster.jobs().items() if job not in self.earlier_jobs}

    def first_cell(self, hardware: str) -> str | None:
        """The manifest of mtp's cell at concurrency 1 on this hardware; None before it is in the store."""
        cell = f"{hardware}/fake/toy/mtp/k3/len1024/short/c1/r1"
        found = list((self.folder / "store" / cell).glob("*/manifest.json"))
        return found[0].read_text() if found else None
