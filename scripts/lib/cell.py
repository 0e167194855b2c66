"""The axes of the matrix and the one grammar of paths.

A *server* is one launch configuration, a *boot* one start of a server, a *cell* one measurement on a boot:

    server  {hardware}/{engine}/{model}/{method}/k{k}/len{max_model_len}
    boot    {server}/r{repeat}
    cell    {server}/{scenario}/c{concurrency}/r{repeat}

Every file of a boot or a cell lies under these paths; nothing else in the project spells them out.
Names are letters, digits, '.', '_' and '-'; numbers are decimal without leading zeros.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

SERVER_PATTERN = "{hardware}/{engine}/{model}/{method}/k{k}/len{max_model_len}"
BOOT_PATTERN = SERVER_PATTERN + "/r{repeat}"
CELL_PATTERN = SERVER_PATTERN + "/{scenario}/c{concurrency}/r{repeat}"
TRY = "try-{number}.json"
"""File of a cell that says where the evidence of one try lies; numbers count from 1."""

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
COUNT = r"0|[1-9][0-9]*"
NAME_AXES = ("hardware", "engine", "model", "method", "scenario")
COUNT_AXES = ("k", "max_model_len", "concurrency", "repeat")
AXES = ("hardware", "engine", "model", "method", "k", "max_model_len", "scenario", "concurrency", "repeat")
WILDCARDS = dict.fromkeys(NAME_AXES, NAME) | dict.fromkeys((*COUNT_AXES, "number"), COUNT)

BASELINE = "none"


def _regex(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", pattern)
    return re.compile(
        "".join(
            f"(?P<{part}>{WILDCARDS[part]})" if i % 2 else re.escape(part) for i, part in enumerate(parts)
        )
    )


_CELL_REGEX = _regex(CELL_PATTERN)


def method_name(method: str, k: int) -> str:
    """A method with its number of speculative tokens in words: `mtp k3`, and `none` where there are none."""
    return f"{method} k{k}" if k else method


@dataclass(frozen=True, order=True)
class Server:
    """One launch configuration. `k` is num_speculative_tokens; the baseline `none` has k 0."""

    hardware: str
    engine: str
    model: str
    method: str
    k: int
    max_model_len: int

    @property
    def path(self) -> str:
        return SERVER_PATTERN.format_map(vars(self))

    @classmethod
    def from_axes(cls, axes: Mapping[str, object]) -> Server:
        """Build it from a mapping that has at least the server's axes (strings or numbers, e.g. Snakemake wildcards).

        Raises KeyError for a missing axis and ValueError for a count that is no number.
        """
        names = (str(axes[axis]) for axis in ("hardware", "engine", "model", "method"))
        return cls(*names, int(str(axes["k"])), int(str(axes["max_model_len"])))

    @property
    def label(self) -> str:
        """A short name for consoles and log lines, e.g. `cpu smollm2 mtp k3 len2048`."""
        return f"{self.hardware} {self.engine} {self.model} {method_name(self.method, self.k)} len{self.max_model_len}"


@dataclass(frozen=True, order=True)
class Boot:
    """One start of a server; `repeat` counts from 1."""

    server: Server
    repeat: int = 1

    @classmethod
    def from_axes(cls, axes: Mapping[str, object]) -> Boot:
        """As Server.from_axes, with `repeat`."""
        return cls(Server.from_axes(axes), int(str(axes["repeat"])))

    @property
    def path(self) -> str:
        return BOOT_PATTERN.format_map(vars(self.server) | {"repeat": self.repeat})


@dataclass(frozen=True, order=True)
class Cell:
    """One measurement: a server under one scenario at one concurrency, on boot number `repeat`."""

    server: Server
    scenario: str
    concurrency: int
    repeat: int = 1

    @property
    def boot(self) -> Boot:
        return Boot(self.server, self.repeat)

    @property
    def axes(self) -> dict[str, str | int]:
        """All nine axis values, in the order of AXES."""
        values = vars(self.server) | {
            "scenario": self.scenario,
            "concurrency": self.concurrency,
            "repeat": self.repeat,
        }
        return {axis: values[axis] for axis in AXES}

    @property
    def path(self) -> str:
        return CELL_PATTERN.format_map(self.axes)

    @property
    def turn(self) -> tuple[str, int]:
        """Order within a boot: concurrency rises on odd repeats and falls on even ones, so that a drift
        of the machine during a boot does not always favour the same end of the axis."""
        return (self.scenario, self.concurrency if self.repeat % 2 else -self.concurrency)

    @classmethod
    def from_axes(cls, axes: Mapping[str, object]) -> Cell:
        """As Server.from_axes, with all nine axes."""
        counts = (int(str(axes[axis])) for axis in ("concurrency", "repeat"))
        return cls(Server.from_axes(axes), str(axes["scenario"]), *counts)

    @classmethod
    def from_path(cls, path: str) -> Cell:
        """Inverse of `path`. Raises ValueError when `path` does not follow the grammar."""
        match = _CELL_REGEX.fullmatch(path)
        if match is None:
            raise ValueError(f"{path!r} is no cell path; the grammar is {CELL_PATTERN}")
        return cls.from_axes(match.groupdict())
