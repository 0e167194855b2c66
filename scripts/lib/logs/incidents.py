"""What may be a cause: one exception, one death, one fatal line; and how such lines open."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

DEATH = re.compile(
    r"(?:Worker proc (?P<worker>\S+) died unexpectedly \(exit code: (?P<worker_code>-?\d{1,5})\)"
    r"|Subprocess (?P<sub>\S+) \(pid=\d+\) crashed with exit code (?P<sub_code>-?\d{1,5})"
    r"|(?P<killed>Out of memory: Killed process|oom-kill:|Memory cgroup out of memory|Detected \d+ "
    r"oom_kill event"
    r"|oom_kill event|OOMKilled)"
    r"|(?:^|line \d+:\s+\d+ )(?P<signal>Segmentation fault|Bus error|Aborted|Killed)(?:\s+\(core "
    r"dumped\))?(?:\s*$|\s{2,}\S)"
    r"|Fatal Python error: (?P<fatal>.+)|!{3,} (?P<segfault>Segfault encountered)"
    r"|terminate called after throwing an instance of (?P<terminate>.+))"
)

DEATH_WORDS = (
    "died unexpectedly",
    "crashed with",
    "Killed",
    "oom",
    "out of memory",
    "Segmentation",
    "Bus error",
    "Aborted",
    "Fatal Python",
    "Segfault",
    "terminate called",
)
"""One of them is in every text that DEATH matches; looking for them is much cheaper."""

# Openings of lines that name a cause though no exception does; the prefilter needs them literally.
FATAL_STARTS = (
    "Worker proc ",
    "Subprocess ",
    "Watchdog timeout",
    "Watchdog caught collective",
    "RPC call to ",
    "ptxas fatal",
    "Prefill out of memory",
    "Decode out of memory",
    "Initialization failed.",
    "Received sigquit",
    "Engine core proc ",
    "Out of memory: Killed",
    "Memory cgroup out of memory",
    "oom-kill:",
    "Detected ",
    "OOMKilled",
    "Segmentation fault",
    "Bus error",
    "Aborted",
    "Killed",
    "Fatal Python error",
    "Segfault encountered",
    "terminate called after",
    "slurmstepd: error",
    "docker: ",
    "permission denied while trying",
    "cannot start ",
    "FATAL: ",
    "ERROR ",
    "CRITICAL ",
    "ERROR:",
    "CRITICAL:",
    "Process ",
    "Traceback (most",
    "Exception Group Traceback",
    "Exception: ",
    "Scheduler hit an exception",
    "DetokenizerManager hit an exception",
    "TokenizerManager hit an exception",
)
# Anywhere in a line: class names and argparse errors cannot be listed by their first letters.
FATAL_LITERALS = (b"rror: ", b"xception: ")


@dataclass
class Incident:
    """One exception, death or fatal line.

    kind: exception, bare (an exception line without a traceback), death, argument, or line; text: the
    exception line or message; detail: text plus the lines that belong to it; stack: the traceback's frames;
    marker: the record printed just before it by the same logger; relation: direct or during when Python
    chained it to `previous`; count: repeats.
    """

    kind: str
    text: str
    line: int
    offset: int
    process: str | None
    pid: int | None
    level: str | None
    source: str | None
    raw: str
    marker: str | None = None
    frames: list[str] = field(default_factory=list)
    message: list[str] = field(default_factory=list)
    message_lines: list[int] = field(default_factory=list)
    relation: str | None = None
    previous: Incident | None = None
    following: Incident | None = None
    code: int | None = None
    count: int = 1
    start_offset: int = 0

    @property
    def detail(self) -> str:
        """The exception line and its continuation, one string."""
        return "\n".join([self.text, *self.message])

    @property
    def stack(self) -> str:
        """The frames of the traceback, one string."""
        return "\n".join(self.frames)


def death_code(death: re.Match[str]) -> int | None:
    """Exit code or negative signal that a match of DEATH stands for."""
    for group in ("worker_code", "sub_code"):
        if death[group] is not None:
            return int(death[group])
    if death["killed"] or death["signal"] == "Killed":
        return -9
    names = {"Segmentation fault": -11, "Bus error": -7, "Aborted": -6}
    if death["signal"]:
        return names[death["signal"]]
    if death["fatal"] or death["segfault"]:
        return -11 if "egmentation" in (death["fatal"] or "egmentation") else -6
    return -6
