"""endpoint.json: what the serve job tells the measuring jobs about its server.

Written before the server is up and replaced atomically at every change, so a reader always sees one whole state. The file
lies in the boot's folder; a reader that finds the writing process gone knows that the server is gone too.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from scripts.lib.processes import alive, start_ticks

STARTING, READY, FAILED, STOPPED = "starting", "ready", "failed", "stopped"
RESTART_REQUEST = "restart"
NEVER_READY = ("startup", "gate")
"""Phases of failures before any cell: another start would meet them again."""
_POLL_S = 0.1


class ServerLost(RuntimeError):
    """The serve job ended or is ending; the cell is not measured and not failed, the next run does it."""


@dataclass(frozen=True)
class Failure:
    """Why a server or a cell failed. `failure_class` is one of the classes of docs/logs.md.

    `retry` says whether the next run tries again, `phase` is startup | gate | fit | warmup | measure.
    """

    failure_class: str
    cause: str
    phase: str
    retry: bool
    root_line: str | None = None
    fix: str | None = None
    process: str | None = None
    exit_status: int | None = None

    def to_json(self) -> dict[str, object]:
        """As the manifest of a cell keeps it: the class under `class`."""
        fields = asdict(self)
        return {"class": fields.pop("failure_class")} | fields


@dataclass(frozen=True)
class Endpoint:
    """State of one boot. `cells` will be measured on it; `start` counts its server processes (1, 2 after a crash, ...)."""

    state: str
    boot_id: str
    cells: int = 1
    start: int = 0
    supervisor_pid: int = 0
    supervisor_ticks: int | None = None
    base_url: str | None = None
    model: str | None = None
    log: str | None = None
    log_interval_s: float = 0.0
    facts: dict = field(default_factory=dict)
    """What the manifest keeps of the server: argv, environment, image, versions, start-up times."""
    beside: dict | None = None
    """Of the second server on the same device: base_url, model, log and what else the manifest keeps; None without one."""
    failure: Failure | None = None

    def write(self, path: Path) -> None:
        aside = path.with_name(f".{path.name}.{os.getpid()}")
        aside.write_text(json.dumps(asdict(self)), encoding="utf-8")
        aside.replace(path)

    @classmethod
    def read(cls, path: Path) -> Endpoint:
        """Raises OSError when there is no file and ValueError when it is no endpoint."""
        data = json.loads(path.read_text(encoding="utf-8"))
        failure = data.pop("failure")
        return cls(failure=Failure(**failure) if failure else None, **data)

    def meeting(self, path: Path) -> Path:
        """Folder beside endpoint.json in which this boot's cells meet: turns, deaths, the request for a new start."""
        return path.with_name(self.boot_id)

    def of_this_process(self) -> Endpoint:
        """The same, signed by the calling process as its supervisor."""
        return replace(self, supervisor_pid=os.getpid(), supervisor_ticks=start_ticks(os.getpid()))

    @property
    def supervised(self) -> bool:
        return self.supervisor_ticks is not None and alive(self.supervisor_pid, self.supervisor_ticks)


def read_endpoint(path: Path) -> Endpoint:
    """Raises ServerLost when the file is gone, as it is after the serve job's end."""
    try:
        return Endpoint.read(path)
    except FileNotFoundError:
        raise ServerLost(f"{path} is gone: the server was stopped") from None


def await_settled(path: Path, boot_id: str | None = None) -> Endpoint:
    """Wait until the server is ready or failed. Costs a file read every 0.1 s.

    Raises ServerLost when the serve job is gone or stopping, or serves another boot than `boot_id`: a job that outlived a
    killed run must not measure on the next run's server.
    """
    while True:
        endpoint = read_endpoint(path)
        if boot_id not in (None, endpoint.boot_id):
            raise ServerLost(f"{path.parent} is being served anew by another run")
        if endpoint.state == STOPPED or not endpoint.supervised:
            raise ServerLost(f"the serve job of {path.parent} ended before this cell was measured")
        if endpoint.state in (READY, FAILED):
            return endpoint
        time.sleep(_POLL_S)
