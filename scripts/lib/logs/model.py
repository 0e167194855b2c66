"""Data that a log parse yields. Absent values are None and carry a reason; they are never 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from scripts.lib.logs.series import IntervalSeries, SpeculationSeries


class Line(NamedTuple):
    """One logical log line, all outer layers taken off.

    offset: byte offset of the line's start in the (decompressed) log; number: 1-based count of
    newline-terminated lines, as `grep -n` and editors count; process/pid: innermost process prefix; source:
    `file:line` of the logger; message: what the program said, indentation kept; raw: the physical text; head:
    which record head was found; repeated: how many further copies Ray says it dropped.
    """

    offset: int
    number: int
    process: str | None
    pid: int | None
    level: str | None
    timestamp: str | None
    source: str | None
    message: str
    raw: str
    head: str | None = None
    repeated: int = 0


class Observation(NamedTuple):
    """One value as one line printed it, before ranks and engines are combined."""

    value: Any
    unit: str | None
    raw: str
    line: int
    offset: int
    process: str | None
    pid: int | None
    dialect: str
    repeated: int = 0


@dataclass(frozen=True)
class Fact:
    """A combined value with its provenance.

    raw, line, process and dialect belong to the observation that decided the value; observations holds every
    line that took part; note says what a reader must know before comparing it.
    """

    value: Any
    unit: str | None
    raw: str
    line: int
    process: str | None
    dialect: str
    observations: tuple[Observation, ...] = ()
    note: str | None = None


@dataclass(frozen=True)
class Notice:
    """A line that changes how a speculative benchmark must be read. values holds the numbers it named."""

    id: str
    text: str
    offset: int
    line: int
    process: str | None
    advice: str
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class MemoryStep:
    """Free device memory SGLang printed at one start-up step (GiB; its "GB" is 2^30 bytes)."""

    offset: int
    line: int
    process: str | None
    step: str
    avail_gib: float


@dataclass(frozen=True)
class Link:
    """One exception or death on the way from the cause to the last line; role is cause, chained, wrapper,
    victim..."""

    role: str
    text: str
    line: int
    process: str | None


@dataclass(frozen=True)
class Failure:
    """Why a server did not start, died, or refused requests.

    root_line: the decisive text, verbatim; line_number: where it stands (None when only an exit status is
    known); failure_class: infeasible, transient, resource_start, resource_runtime, stale_software, access,
    mislabelled, request or unknown; phase: start, run or unknown; values: numbers named in the message;
    memory_direction: which way the memory fraction must move ("raise", "lower" or None); fatal: False when
    the server lived on.
    """

    root_line: str
    line_number: int | None
    offset: int | None
    process: str | None
    failure_class: str
    cause: str
    fix: str
    catalogue_id: str | None
    source: str | None
    context: tuple[str, ...] = ()
    chain: tuple[Link, ...] = ()
    phase: str = "unknown"
    values: Mapping[str, float] = field(default_factory=dict)
    memory_direction: str | None = None
    fatal: bool = True


@dataclass
class LogReport:
    """Everything one log says about its last boot."""

    engine: str | None = None
    version: str | None = None
    generation: str | None = None
    facts: dict[str, Fact] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    intervals: IntervalSeries = field(default_factory=IntervalSeries)
    speculation: SpeculationSeries = field(default_factory=SpeculationSeries)
    warnings: list[Notice] = field(default_factory=list)
    memory_steps: list[MemoryStep] = field(default_factory=list)
    config: dict[str, str] = field(default_factory=dict)
    args: dict[str, str] = field(default_factory=dict)
    failure: Failure | None = None
    incidents: Any = None
    phase: str | None = None
    ready_offset: int | None = None
    shutdown_offset: int | None = None
    boots: int = 1
    lines: int = 0
    size_bytes: int = 0
    note: str | None = None

    @property
    def ready(self) -> bool:
        """Whether a line announced readiness. It does not prove that requests are answered."""
        return self.ready_offset is not None

    def get(self, name: str) -> Any:
        """The value of a fact, or None when the log does not say (see missing[name] for why)."""
        fact = self.facts.get(name)
        return None if fact is None else fact.value

    def notices(self, notice_id: str) -> Sequence[Notice]:
        """All warnings with this id, in log order."""
        return [notice for notice in self.warnings if notice.id == notice_id]
