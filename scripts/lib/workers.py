"""A thread for every job of a run, in Snakemake's executor of local jobs."""

from __future__ import annotations

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
