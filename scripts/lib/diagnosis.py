"""From a dead or silent server to a Failure: the log's root cause where it has one, honest words where it has none."""

from __future__ import annotations

from pathlib import Path

from scripts.lib.endpoint import Failure

KEPT_CLASSES = frozenset(
    {"infeasible", "resource_start", "resource_runtime", "stale_software", "mislabelled"}
)
"""Failures another try would not change. Everything else (transient, access, unknown) is tried again by the next run."""


def died(log: Path, exit_status: int | None, phase: str) -> Failure:
    """Why the server that wrote `log` ended. An exit status of 0 proves nothing: engines die with it."""
    from scripts.lib.logs import find_failure  # only a failure pays for loading the parser

    found = find_failure(log, exit_status=exit_status, ended="exited")
    if found is None:
        return Failure(
            "unknown",
            f"the server ended with exit status {exit_status} and its log names no error",
            phase,
            retry=True,
            exit_status=exit_status,
        )
    return Failure(
        found.failure_class,
        found.cause,
        phase,
        retry=found.failure_class not in KEPT_CLASSES,
        root_line=found.root_line,
        fix=found.fix,
        process=found.process,
        exit_status=exit_status,
    )


def stuck(log: Path | None, reason: str, phase: str) -> Failure:
    """A server that lives but does not serve: the log's error if it names one, else `reason`. Always worth another try."""
    from scripts.lib.logs import find_failure

    found = find_failure(log, ended="timeout") if log else None
    return Failure(
        found.failure_class if found else "unknown",
        reason,
        phase,
        retry=True,
        root_line=found.root_line if found else None,
        fix=found.fix if found else None,
    )
