"""Slurm beside its executor plugin: what became of a job, why one waits, and what do the jobs on its nodes say.

The plugin's words about a group of jobs, and every server with its cells is one, get lost in Snakemake.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from scripts.lib import progress, slurm_ahead
from scripts.lib.slurm_ahead import Refused, Request

_SAID = re.compile(r"\d\d:\d\d:\d\d  ")
_POLL_S = 2.0
_QUEUE_POLL_S = 30.0
_USUAL = ("None", "Priority", "Resources", "BeginTime", "Prolog", "Cleaning")
"""Why jobs wait until it is their turn."""


def accompany(
    requests: Iterable[tuple[str, Request]],
    uncounted: Iterable[str],
    log_folder: Path | None,
    snakemake: logging.Logger,
    is_local: Callable[[str], bool],
) -> None:
    """Look ahead before a run, and from then on tell what its jobs say, which of them are lost and which wait for what may never
    come. `uncounted` names the hardware whose GPUs no gres asks for, `log_folder` is where the plugin writes the jobs' logs if not
    in its usual place, `is_local` tells rules that run here by their names. Raises Refused.
    """
    missing = [tool for tool in ("sbatch", "squeue", "sacct") if shutil.which(tool) is None]
    if missing:
        raise Refused(f"{', '.join(missing)} not found on PATH: start this on a login node of the cluster")
    left = jobs_of(Path.cwd())
    if left:
        raise Refused(
            f"jobs of an earlier run in this folder are still in the queue: {' '.join(left)}. Wait for them, what they measure is "
            f"kept; or end them: scancel {' '.join(left)}"
        )
    for hardware in uncounted:
        raise Refused(
            f"config/hardware/{hardware}.yaml: slurm.gres is missing, and a job that asks for no GPU gets none, or one that is not its "
            'own. Name it as `sinfo --format=%G` does (gres: "gpu:h100"); gres: null where whole nodes are given and nobody counts GPUs'
        )
    slurm_ahead.check(requests, progress.say)
    snakemake.addHandler(LostJobs(progress.say, is_local))
    Follower(log_folder or Path(".snakemake/slurm_logs"), progress.repeat).start()
    Queue(Path.cwd(), progress.say).start()


def jobs_of(folder: Path) -> dict[str, str]:
    """The jobs that the plugin sent from `folder` and that wait or run: id and Slurm's reason why it waits."""
    lines = slurm_ahead.output(["squeue", "--me", "--noheader", "--format=%i|%k|%r|%Z"]).splitlines()
    rows = [line.split("|") for line in lines]
    return {
        row[0]: row[2]
        for row in rows
        if len(row) == 4 and row[1].startswith("rule_") and Path(row[3]) == folder
    }


def state_of(job: str) -> str:
    """CANCELLED, TIMEOUT, NODE_FAIL, ... as the queue remembers it; `gone from the queue` afterwards."""
    states = slurm_ahead.output(
        ["squeue", "--noheader", "--states=all", "--format=%T", f"--jobs={job}"]
    ).split()
    return states[0] if states else "gone from the queue"


class LostJobs(logging.Handler):
    """Says in one line which job of the cluster did not end well. Attach it to Snakemake's logger. `is_local` tells rules that run
    where snakemake does, of which it says enough itself."""

    def __init__(self, say: Callable[[str], None], is_local: Callable[[str], bool]):
        super().__init__(logging.ERROR)
        self.say, self.is_local = say, is_local

    def emit(self, record: logging.LogRecord) -> None:
        event = getattr(getattr(record, "event", None), "name", None)
        if event == "GROUP_ERROR":
            details = record.job_error_info[0].get("aux", {}) if record.job_error_info else {}
            self._tell(
                "a server's job",
                getattr(record, "external_jobid", None) or details.get("external_jobid"),
                record.aux_logs,
            )
        elif event == "JOB_ERROR" and not record.indent and not self.is_local(record.rule_name):
            self._tell(f"the job of {record.rule_name}", record.aux.get("external_jobid"), record.log)

    def _tell(self, what: str, job: str | None, logs: Iterable[object]) -> None:
        if job is None:
            self.say(f"Slurm did not take {what}")
            return
        log = next((str(path) for path in reversed([*logs]) if path), "none")
        self.say(f"{what} on the cluster, {job}, did not end well: {state_of(job)}; its log: {log}")


class Follower(threading.Thread):
    """Repeats here what the jobs of this run say on their nodes: boots, cells, time left. Reads their logs below `folder`."""

    def __init__(self, folder: Path, say: Callable[[str], None]):
        super().__init__(daemon=True, name="slurm-follower")
        self.folder = folder
        self.say = say
        self._read: dict[Path, int] = {path: path.stat().st_size for path in folder.rglob("*.log")}
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(_POLL_S):
            self.look()

    def look(self) -> None:
        """Say every whole line that came since the last look."""
        for path in sorted(self.folder.rglob("*.log")):
            try:
                with path.open("rb") as file:
                    if file.seek(0, os.SEEK_END) < self._read.get(path, 0):
                        self._read[path] = 0  # a job that is started again writes its log anew
                    file.seek(self._read.get(path, 0))
                    new = file.read()
            except OSError:
                continue  # the plugin deletes the log of a job that ended well
            whole = new[: new.rfind(b"\n") + 1]
            self._read[path] = self._read.get(path, 0) + len(whole)
            for line in whole.decode("utf-8", "replace").splitlines():
                if _SAID.match(line):
                    self.say(line)


class Queue(threading.Thread):
    """Says why a job of the run waits, once for each reason that is more than others' turn: it may be one that never ends."""

    def __init__(self, folder: Path, say: Callable[[str], None]):
        super().__init__(daemon=True, name="slurm-queue")
        self.folder = folder
        self.say = say
        self._told: set[tuple[str, str]] = set()
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(_QUEUE_POLL_S):
            self.look()

    def look(self) -> None:
        for job, reason in jobs_of(self.folder).items():
            if not reason.startswith(_USUAL) and (job, reason) not in self._told:
                self._told.add((job, reason))
                self.say(
                    f"a job on the cluster, {job}, waits for more than its turn: {reason} (squeue --jobs={job})"
                )
