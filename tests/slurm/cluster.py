"""A real Slurm for tests: munge, slurmctld and one slurmd per node, all on this machine, on free ports, in one folder.

Every daemon is a child of this process and is ended by its own pid. Needs root (a slurmd starts jobs as their users) and the
packages slurm-wlm and munge.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from scripts.lib.guard import descendants
from tests.processes import wait_for

PROGRAMS = (
    "munged",
    "mungekey",
    "slurmctld",
    "slurmd",
    "sbatch",
    "srun",
    "squeue",
    "scancel",
    "scontrol",
    "sinfo",
)
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"

CONFIG = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
AuthInfo=socket={folder}/munge/socket,cred_expire=5
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
MailProg=/bin/true
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
AccountingStorageType=accounting_storage/none
GresTypes=gpu
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=10
KillWait=5
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
"""

# Each node shows one GPU called after it, as a driver would: all nodes are this machine, and their GPUs are told apart by UUID.
NVIDIA_SMI = """#!/bin/sh
fields=${1#--query-gpu=} row= IFS=,
for field in $fields; do
    case $field in
        index) value=0;;
        uuid) value=GPU-$SLURMD_NODENAME;;
        name) value="NVIDIA $SLURMD_NODENAME";;
        memory.used) value=4;;
        *) value=80000;;
    esac
    row="$row$value, "
done
echo "${row%, }"
"""


@dataclass(frozen=True)
class Node:
    """One slurmd with one GPU of its own type, in a partition of its own, both called `name`."""

    name: str
    constraint: str = "any"


def missing() -> str | None:
    """Why no cluster can be started here; None when it can."""
    if os.geteuid() != 0:
        return "a Slurm cluster needs root"
    absent = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    return f"not installed: {', '.join(absent)} (Debian: slurm-wlm, munge)" if absent else None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Cluster:
    """Started by `with`; `environment` makes Slurm's commands and the workflow talk to it."""

    def __init__(self, folder: Path, nodes: tuple[Node, ...]):
        self.folder = folder
        self.nodes = nodes
        self.daemons: dict[str, subprocess.Popen] = {}
        self.environment = os.environ | {
            "SLURM_CONF": str(folder / "slurm.conf"),
            "PATH": f"{folder}/bin:{PATH}",
        }

    def __enter__(self) -> Cluster:
        try:
            self._configure()
            self._munge()
            self._start("slurmctld", "slurmctld", "-D")
            for node in self.nodes:
                self.start_node(node.name)
            wait_for(
                lambda: self.node_states() == dict.fromkeys(self.node_states(), "idle"), 60, "idle nodes"
            )
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for pid in [int(job) for job in self.jobs()]:
            self.command("scancel", str(pid), check=False)
        for name in reversed(list(self.daemons)):
            self.kill(name)

    def command(self, *words: str, check: bool = True) -> str:
        """Output of one of Slurm's commands."""
        return subprocess.run(
            words, env=self.environment, stdout=subprocess.PIPE, text=True, check=check, timeout=60
        ).stdout

    def node_states(self) -> dict[str, str]:
        lines = self.command("sinfo", "--noheader", "--Node", "--format=%N %T", check=False).splitlines()
        return dict(line.split() for line in lines) or {"no node": "is known yet"}

    def jobs(self, *states: str) -> dict[str, dict[str, str]]:
        """The queue by job id; finished jobs are shown for some minutes. Keys as below."""
        keys = (
            "id",
            "state",
            "partition",
            "node",
            "limit",
            "gres",
            "constraint",
            "memory",
            "cpus",
            "account",
        )
        form = "--format=%i|%T|%P|%N|%l|%b|%f|%m|%C|%a"
        lines = self.command(
            "squeue", "--noheader", f"--states={','.join(states) or 'all'}", form, check=False
        )
        rows = [dict(zip(keys, line.split("|"), strict=True)) for line in lines.splitlines()]
        return {row["id"]: row for row in rows}

    def start_node(self, name: str) -> None:
        self._start(f"slurmd {name}", "slurmd", "-D", "-N", name)

    def crash_node(self, name: str) -> None:
        """The node as after a power cut: its slurmd and every process of its jobs are gone at once."""
        slurmd = self.daemons[f"slurmd {name}"].pid
        for pid in [slurmd, *self._steps(name)]:
            for victim in [pid, *descendants(pid)]:
                try:
                    os.kill(victim, signal.SIGKILL)
                except ProcessLookupError:
                    continue
        self.daemons.pop(f"slurmd {name}").wait()

    def _steps(self, name: str) -> list[int]:
        """slurmstepd processes of the node: they outlive their slurmd. Told by the node's spool folder in their environment."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if not entry.name.isdigit() or b"slurmstepd" not in (entry / "cmdline").read_bytes():
                    continue
                seen = (entry / "environ").read_bytes()
            except OSError:
                continue
            if str(self.folder).encode() in seen and f"SLURMD_NODENAME={name}".encode() in seen:
                found.append(int(entry.name))
        return found

    def kill(self, name: str, number: int = signal.SIGTERM) -> None:
        process = self.daemons.pop(name)
        process.send_signal(number)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _configure(self) -> None:
        for name in ("bin", "state", "munge", *(f"spool.{node.name}" for node in self.nodes)):
            (self.folder / name).mkdir(parents=True)
        text = CONFIG.format(host=socket.gethostname(), port=free_port(), folder=self.folder)
        gres = ""
        for node in self.nodes:
            # Eight CPUs whatever this machine has: what they are asked for is what is tested, not what they do.
            text += (
                f"NodeName={node.name} NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Port={free_port()} "
                f"CPUs=8 RealMemory=16000 Gres=gpu:{node.name}:1 Feature={node.constraint}\n"
                f"PartitionName={node.name} Nodes={node.name} MaxTime=INFINITE\n"
            )
            gres += f"NodeName={node.name} Name=gpu Type={node.name} File=/dev/null\n"
        # The plugin's job step drops every SLURM_ variable, by which an srun of this cluster would find its configuration.
        srun = f'#!/bin/sh\nSLURM_CONF={self.folder}/slurm.conf exec {shutil.which("srun")} "$@"\n'
        for name, script in {"srun": srun, "nvidia-smi": NVIDIA_SMI}.items():
            (self.folder / "bin" / name).write_text(script)
            (self.folder / "bin" / name).chmod(0o755)
        (self.folder / "slurm.conf").write_text(text)
        (self.folder / "gres.conf").write_text(gres)
        (self.folder / "cgroup.conf").write_text("CgroupAutomount=no\n")

    def _munge(self) -> None:
        folder = self.folder / "munge"
        folder.chmod(0o711)
        self.command("mungekey", "--create", f"--keyfile={folder}/key")
        names = {
            "key-file": "key",
            "pid-file": "pid",
            "seed-file": "seed",
            "log-file": "log",
            "socket": "socket",
        }
        options = [f"--{option}={folder}/{name}" for option, name in names.items()]
        self._start("munged", "munged", "--foreground", "--force", *options)
        wait_for(lambda: (folder / "socket").exists(), 10, "munged")

    def _start(self, name: str, *words: str) -> None:
        log = (self.folder / f"{name.replace(' ', '.')}.out").open("ab")
        self.daemons[name] = subprocess.Popen(
            words,
            env=self.environment,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        time.sleep(0.1)
        assert self.daemons[name].poll() is None, f"{name} ended at once: {log.name}"
