"""Slurm beside its executor plugin: would it take our jobs, what became of one, and what do the jobs on its nodes say.

The plugin's words about a group of jobs, and every server with its cells is one, get lost in Snakemake.
"""

from __future__ import annotations

import getpass
import logging
import re
import shlex
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from scripts.lib import progress

_OPTIONS = {
    "slurm_partition": "--partition",
    "gres": "--gres",
    "constraint": "--constraint",
    "qos": "--qos",
    "slurm_account": "--account",
    "cpus_per_task": "--cpus-per-task",
    "mem_mb": "--mem",
    "runtime": "--time",
}
_NO_NODE_NOW = "Requested node configuration is not available"
"""Said of a request that no node can ever meet, and also while the nodes that could are down or drained."""
_SAID = re.compile(r"\d\d:\d\d:\d\d  ")
_TIMEOUT_S = 60.0
_POLL_S = 2.0


class Refused(RuntimeError):
    """Slurm would not take a job of this run; the message says which, why and where to change it."""


def check_command(request: Mapping[str, str | int]) -> list[str]:
    """The command that asks Slurm whether it would take such a job, and submits nothing."""
    options = [f"{_OPTIONS[name]}={value}" for name, value in request.items() if name in _OPTIONS]
    return ["sbatch", "--test-only", *options, "--wrap=true"]


def accompany(
    requests: Iterable[tuple[str, Mapping[str, str | int]]],
    log_folder: Path | None,
    snakemake: logging.Logger,
) -> None:
    """Look ahead before a run, and from then on tell what its jobs say and which of them are lost. `log_folder` is where the
    plugin writes the jobs' logs if not in its usual place. Raises Refused.
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
    check(requests, progress.say)
    snakemake.addHandler(LostJobs(progress.say))
    Follower(log_folder or Path(".snakemake/slurm_logs"), progress.repeat).start()


def jobs_of(folder: Path) -> list[str]:
    """Ids of the jobs, waiting or running, that the plugin sent from `folder`."""
    lines = _output(["squeue", "--me", "--noheader", "--format=%i|%k|%Z"]).splitlines()
    rows = [line.split("|") for line in lines]
    return [row[0] for row in rows if len(row) == 3 and row[1].startswith("rule_") and Path(row[2]) == folder]


def check(requests: Iterable[tuple[str, Mapping[str, str | int]]], say: Callable[[str], None]) -> None:
    """Ask about each (hardware name, request). Raises Refused for what cannot be submitted; what may only have to wait is said."""
    for hardware, request in requests:
        account = request.get("slurm_account")
        refused = None if account is None else account_refused(str(account))
        if refused:
            raise Refused(f"config/hardware/{hardware}.yaml: slurm.account: {refused}")
        words = _asked(check_command(request))
        if words is None:
            continue
        told = (
            f"Slurm on {hardware}: {words}. Compare the key slurm of config/hardware/{hardware}.yaml with `sinfo`; "
            f"this asks again: {shlex.join(check_command(request))}"
        )
        if _NO_NODE_NOW not in words:
            raise Refused(told)
        say(told)


def _asked(command: list[str]) -> str | None:
    """What Slurm has against the job; None when it would take it."""
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"no answer within {_TIMEOUT_S:.0f} s"
    if answer.returncode == 0:
        return None
    lines = [line.strip() for line in (answer.stderr + answer.stdout).splitlines() if line.strip()]
    return lines[0].removeprefix("sbatch: error: ") if lines else f"sbatch ended with {answer.returncode}"


def account_refused(account: str) -> str | None:
    """Why the executor plugin would stumble over this account, which hangs the run; None when it would not.

    It asks sacctmgr, then sshare, and takes every account where both know none.
    """
    away = f"leave it out and use `export SBATCH_ACCOUNT={shlex.quote(account)}` instead"
    try:
        known = _accounts("sacctmgr", "-n", "-s", "list", "user", getpass.getuser(), "format=account%256")
        if not known:
            known = _accounts("sshare", "-U", "--format", "Account%256", "--noheader", check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return f"{account!r} cannot be checked here ({error}); {away}"
    if known and account.lower() not in known:
        return (
            f"{account!r} is none of your accounts ({', '.join(sorted(known))}); name one of them, or {away}"
        )
    return None


def _accounts(*command: str, check: bool = False) -> set[str]:
    """Raises OSError or SubprocessError where there is no answer; without `check` a command that fails knows no account."""
    answer = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=check)
    return set(answer.stdout.lower().split()) if answer.returncode == 0 else set()


def state_of(job: str) -> str:
    """CANCELLED, TIMEOUT, NODE_FAIL, ... as the queue remembers it; `gone from the queue` afterwards."""
    states = _output(["squeue", "--noheader", "--states=all", "--format=%T", f"--jobs={job}"]).split()
    return states[0] if states else "gone from the queue"


def _output(command: list[str]) -> str:
    """What it prints; nothing when it fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


class LostJobs(logging.Handler):
    """Says in one line which job of the cluster did not end well. Attach it to Snakemake's logger."""

    def __init__(self, say: Callable[[str], None]):
        super().__init__(logging.ERROR)
        self.say = say

    def emit(self, record: logging.LogRecord) -> None:
        event = getattr(getattr(record, "event", None), "name", None)
        if event == "GROUP_ERROR":
            details = record.job_error_info[0].get("aux", {}) if record.job_error_info else {}
            self._tell(
                "a server's job",
                getattr(record, "external_jobid", None) or details.get("external_jobid"),
                record.aux_logs,
            )
        elif event == "JOB_ERROR" and not record.indent:
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
                    file.seek(self._read.get(path, 0))
                    new = file.read()
            except OSError:
                continue  # the plugin deletes the log of a job that ended well
            whole = new[: new.rfind(b"\n") + 1]
            self._read[path] = self._read.get(path, 0) + len(whole)
            for line in whole.decode("utf-8", "replace").splitlines():
                if _SAID.match(line):
                    self.say(line)
