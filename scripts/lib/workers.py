"""What keeps the jobs of a run from running at once on this machine: threads of Snakemake's executor, which are made, and --cores,
of which is told."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def make_room(scheduler: Any, jobs: int) -> None:
    """Let `jobs` more jobs run at once than Snakemake provides for: five and one per core.

    The cells of a boot are jobs that wait, and each keeps a thread. With two boots at once those of one can take all threads, and
    the other's cells, which its server is there for, never start. Threads are made when a job needs one.
    """
    executor = scheduler._local_executor or scheduler._executor
    if hasattr(executor, "workers"):  # others' plugins and --touch start no threads
        executor.workers += jobs
        executor.pool = ThreadPoolExecutor(max_workers=executor.workers)


def kept_idle(devices: int, cores: int, servers: Iterable[int]) -> list[str]:
    """That --cores keeps GPUs idle which --resources device gives, as lines for the console. `servers`: how many GPUs each of the
    run's takes; each takes one core."""
    at_once = 0
    for gpus in sorted(servers):
        if gpus > devices:
            break
        devices, at_once = devices - gpus, at_once + 1
    if at_once <= cores:
        return []
    return [
        f"--cores {cores} lets so many servers run at once; the GPUs are enough for {at_once}: --cores {at_once}"
    ]
