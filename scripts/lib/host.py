"""What else the machine did while a window was open: processor time of the server, the client and everybody else.

Two looks at /proc, before and after the window, so that nothing of it falls inside. All figures but load averages are
differences of the two.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import psutil

_MOST_NAMED = 5
_WORTH_NAMING_S = 0.05
_COUNTED = 0.5
"""A kernel that says less than this share of what two known processes used does not count processor time."""

Process = tuple[int, float]
"""A process for good: its pid and when it started."""


@dataclass(frozen=True)
class ProcessTimes:
    """`own_s` is its processor time, `ended_s` that of its children which have ended (and theirs)."""

    parent: int
    name: str
    own_s: float
    ended_s: float


@dataclass(frozen=True)
class Look:
    """The machine at one moment (`at_s`, of the monotonic clock). Times in CPU seconds since its start, over the processors
    that this process may use.
    """

    at_s: float
    busy_s: float
    steal_s: float
    load_1m: float
    processes: Mapping[Process, ProcessTimes]


def look() -> Look:
    """Read it now; takes some 30 microseconds a process. Raises OSError or psutil.Error where there is no /proc to read."""
    at_s, per_cpu = time.monotonic(), psutil.cpu_times(percpu=True)
    usable = os.sched_getaffinity(0)
    times = [cpu for number, cpu in enumerate(per_cpu) if number in usable] or per_cpu
    processes = {}
    for process in psutil.process_iter(["pid", "ppid", "name", "cpu_times", "create_time"]):
        facts = process.info
        if cpu := facts["cpu_times"]:
            processes[facts["pid"], facts["create_time"]] = ProcessTimes(
                facts["ppid"],
                facts["name"] or "?",
                cpu.user + cpu.system,
                cpu.children_user + cpu.children_system,
            )
    busy_s = sum(cpu.user + cpu.nice + cpu.system + cpu.irq + cpu.softirq for cpu in times)
    return Look(at_s, busy_s, sum(cpu.steal for cpu in times), os.getloadavg()[0], processes)


def tree(processes: Mapping[Process, ProcessTimes], roots: Iterable[int]) -> frozenset[int]:
    """Pids of `roots` and of all their descendants."""
    children: dict[int, list[int]] = {}
    for (pid, _), process in processes.items():
        children.setdefault(process.parent, []).append(pid)
    found: set[int] = set()
    todo = list(roots)
    while todo:
        pid = todo.pop()
        if pid not in found:
            found.add(pid)
            todo += children.get(pid, ())
    return frozenset(found)


def in_container(processes: Mapping[Process, ProcessTimes], container_id: str) -> frozenset[int]:
    """Pids whose control group is the container's: they descend from its runtime, not from who started it."""
    return frozenset(pid for pid, _ in processes if container_id in _cgroup(pid))


def _cgroup(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cgroup", encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def host_state(
    before: Look, after: Look, server: frozenset[int] | None, client: frozenset[int], cpus: int
) -> dict[str, object]:
    """Who used the processors between two looks, as the manifest keeps it. `server`: its pids, None for a server of which no
    process is known; then what is foreign cannot be told apart.

    busy_cpu_s        all processes, those included that came and went
    server_cpu_s      the server's, children that ended included; client_cpu_s the client's (`client`: its pids)
    foreign_cpu_s     the rest: of `cpus` processors over `wall_s`, the seconds between the looks, it is foreign_cpu_share
    steal_s           what the hypervisor kept from this machine
    foreign_processes the largest of them that could be seen: name, pid, cpu_s
    """
    wall_s, busy_s = after.at_s - before.at_s, after.busy_s - before.busy_s
    used = {
        key: times.own_s - (before.processes[key].own_s if key in before.processes else 0.0)
        for key, times in after.processes.items()
    }
    client_s = sum(cpu_s for (pid, _), cpu_s in used.items() if pid in client)
    server_s, foreign_s, source, foreign = None, None, None, {}
    if server is not None:
        server_s = max(0.0, _of_tree(after, server) - _of_tree(before, server))
        foreign = {key: cpu_s for key, cpu_s in used.items() if key[0] not in server | client}
        foreign_s, source = max(0.0, busy_s - server_s - client_s), "processors"
        if busy_s < _COUNTED * (server_s + client_s):
            foreign_s, source = sum(foreign.values()), "processes"
    return {
        "wall_s": wall_s,
        "cpus": cpus,
        "load_1m": {"before": before.load_1m, "after": after.load_1m},
        "busy_cpu_s": busy_s,
        "steal_s": after.steal_s - before.steal_s,
        "server_cpu_s": server_s,
        "client_cpu_s": client_s,
        "foreign_cpu_s": foreign_s,
        "foreign_cpu_share": None if foreign_s is None else foreign_s / (cpus * wall_s),
        "foreign_by": source,
        "foreign_processes": [
            {"pid": key[0], "name": after.processes[key].name, "cpu_s": round(cpu_s, 3)}
            for key, cpu_s in sorted(foreign.items(), key=lambda item: -item[1])[:_MOST_NAMED]
            if cpu_s >= _WORTH_NAMING_S
        ],
    }


def _of_tree(moment: Look, pids: frozenset[int]) -> float:
    """CPU seconds of a whole tree so far: what a member used stays in its parent's `ended_s` when it ends."""
    return sum(times.own_s + times.ended_s for (pid, _), times in moment.processes.items() if pid in pids)
