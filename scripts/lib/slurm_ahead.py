"""Whether Slurm would take the jobs of a run, asked before the first is sent: what it refuses or would let wait for ever ends the
run at once, with the place to change it.
"""

from __future__ import annotations

import getpass
import re
import shlex
import subprocess
from collections.abc import Callable, Iterable, Mapping

Request = Mapping[str, str | int]

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
_READY = ("idle", "mix", "alloc", "comp", "resv", "plan", "plnd")
"""How sinfo calls nodes that take jobs, now or when others have ended."""
_TIMEOUT_S = 60.0


class Refused(RuntimeError):
    """Slurm would not take a job of this run; the message says which, why and where to change it."""


def check_command(request: Request) -> list[str]:
    """The command that asks Slurm whether it would take such a job, and submits nothing."""
    options = [f"{_OPTIONS[name]}={value}" for name, value in request.items() if name in _OPTIONS]
    return ["sbatch", "--test-only", *options, "--wrap=true"]


def check(requests: Iterable[tuple[str, Request]], say: Callable[[str], None]) -> None:
    """Ask about each (hardware name, request). Raises Refused for what cannot be submitted or could never start; what may only have
    to wait is said."""
    for hardware, request in requests:
        account = request.get("slurm_account")
        refused = None if account is None else account_refused(str(account))
        if refused:
            raise Refused(f"config/hardware/{hardware}.yaml: slurm.account: {refused}")
        _ask(hardware, request, say)
        too_long = over_time(request)
        if too_long and "qos" not in request:  # which may allow more than its partition
            raise Refused(f"Slurm on {hardware}: {too_long}")


def _ask(hardware: str, request: Request, say: Callable[[str], None]) -> None:
    words = _asked(check_command(request))
    if words is None:
        return
    no_node = _NO_NODE_NOW in words
    many = ", or lower the server's parallel sizes" if no_node and int(request.get("gpu", 0)) > 1 else ""
    told = (
        f"Slurm on {hardware}: {words}. Compare the key slurm of config/hardware/{hardware}.yaml with `sinfo`{many}; "
        f"this asks again: {shlex.join(check_command(request))}"
    )
    if not no_node or not _nodes_are_away(request):
        raise Refused(told)
    say(told)


def _nodes_are_away(request: Request) -> bool:
    """Whether a node that could meet the request may be down or drained now; also where sinfo does not say."""
    partition = [f"--partition={request['slurm_partition']}"] if "slurm_partition" in request else []
    states = _sinfo("%t", *partition)
    return not states or not all(state.startswith(_READY) and not state.endswith("*") for state in states)


def over_time(request: Request) -> str | None:
    """Why a job of this length would wait in its partition for ever, without a word from sbatch; None where it would not."""
    limits = dict(line.split("|") for line in _sinfo("%P|%l") if line.count("|") == 1)
    default = [name.removesuffix("*") for name in limits if name.endswith("*")]
    named = str(request["slurm_partition"]).split(",") if "slurm_partition" in request else default
    allowed = [minutes(limits.get(name) or limits.get(f"{name}*", "")) for name in named]
    asked = int(request["runtime"])
    if not allowed or None in allowed or asked <= max(allowed):
        return None
    return (
        f"partition {', '.join(named)} runs jobs for {max(allowed)} minutes at most, and a server with its pending cells asks for "
        f"{asked}; lower measurement.cell_limit_s to what a cell really takes, or measure fewer cells at once"
    )


def minutes(limit: str) -> int | None:
    """A time limit as sinfo prints it ([days-]hours:minutes:seconds, or less of it) in whole minutes; None for no limit."""
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", limit)
    if found is None:
        return None
    days, hours, mins, _ = (int(part or 0) for part in found.groups())
    return (days * 24 + hours) * 60 + mins


def _sinfo(form: str, *options: str) -> list[str]:
    """Its lines; none where it does not answer."""
    return output(["sinfo", "--noheader", f"--format={form}", *options]).split()


def output(command: list[str]) -> str:
    """What one of Slurm's commands prints; nothing when it fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


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
