"""What a batch scheduler is asked for: one job per boot (its server and its cells), one per build.

Planning only. The names are Snakemake resources, as the executor plugins for Slurm and Kubernetes read them; an absent one is not
passed on. Local runs ignore them; what they count is `device`, GPUs of this machine, which no scheduler sees
(workflow/rules/common.smk).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scripts.lib.parts import Hardware

REQUESTS = (
    "slurm_partition",
    "gres",
    "gpu",
    "constraint",
    "qos",
    "slurm_account",
    "cpus_per_task",
    "mem_mb",
    "node_selector",
    "runtime",
)
"""Names of the resources that a job may ask for; `runtime`, in minutes, is no matter of hardware and not given by `request`."""

BUILD_MINUTES = 120

WHOLE_MACHINE = 10**6
"""Of the resource `device`: Snakemake cuts it to what --resources allows, so no server of the sweep runs beside the job."""


def request(hardware: Hardware, gpus: int) -> dict[str, str | int]:
    """Resources of a job on this hardware that uses `gpus` of its GPUs (0 for a build that needs none).

    `gres` counts per node, so the GPUs of one server are always those of one machine.
    """
    slurm = hardware.slurm
    asked = {
        "slurm_partition": slurm.get("partition"),
        "gres": f"{slurm['gres']}:{gpus}" if gpus and slurm.get("gres") else None,
        "gpu": gpus,
        "constraint": slurm.get("constraint"),
        "qos": slurm.get("qos"),
        "slurm_account": slurm.get("account"),
        "cpus_per_task": slurm["cpus"],
        "mem_mb": slurm["mem_mb"],
        "node_selector": hardware.kubernetes.get("node_selector", ""),
    }
    return {name: value for name, value in asked.items() if value is not None}


def counts_gpus(hardware: Hardware) -> bool:
    """Whether its file says how GPUs are asked for, be it that nobody counts them (gres: null)."""
    return "gres" in hardware.slurm


def resources(of: Callable[[Any], Mapping[str, str | int]]) -> dict[str, Callable[[Any], str | int | None]]:
    """Functions of the wildcards for a rule's `resources:`, one per name; `of(wildcards)` is the job's request."""

    def reader(name: str) -> Callable[[Any], str | int | None]:
        return lambda wildcards: of(wildcards).get(name)

    return {name: reader(name) for name in REQUESTS}
