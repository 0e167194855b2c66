"""What an exit status, or the lack of readiness, says when no exception does."""

from __future__ import annotations

from scripts.lib.logs.catalogue import lookup
from scripts.lib.logs.model import Failure, LogReport

_SIGNALS = {9: "SIGKILL", 11: "SIGSEGV", 6: "SIGABRT", 15: "SIGTERM", 2: "SIGINT", 7: "SIGBUS", 4: "SIGILL"}


def failure_of_ending(
    report: LogReport, exit_status: int | None, ended: str, failure: Failure | None
) -> Failure | None:
    """Without an exception: the exit status, else that it never served."""
    if ended in ("stopped", "running") and failure is None:
        return None
    signal = _signal(exit_status)
    where = f"last phase: {report.phase}" if report.phase else "the log names no phase"
    phase = "run" if report.ready else "start"
    if signal == 9:
        return _ending(
            report,
            failure,
            "host_oom_kill",
            "transient",
            "killed (SIGKILL) without an exception: host memory ran out, a container limit, or somebody; "
            f"{where}",
            "more host memory, a higher container limit, fewer loader threads; check the kernel log",
            exit_status,
            phase,
        )
    if signal in (11, 6, 7, 4):
        return _ending(
            report,
            failure,
            "terminated_by_signal",
            "unknown",
            f"crashed in native code ({_SIGNALS[signal]}) without an exception; {where}",
            "look at the last lines and the kernel log; try --enforce-eager to narrow it down",
            exit_status,
            phase,
        )
    if ended == "timeout":
        return _never_ready(report, failure, exit_status, where)
    if signal in (15, 2):
        if report.shutdown_offset is not None and report.ready and failure is None:
            return None
        cause = f"somebody stopped it ({_SIGNALS[signal]}), often one's own time limit; {where}"
        fix = "raise the limit if the phase was still advancing"
        return _ending(report, failure, "stopped", "transient", cause, fix, exit_status, phase)
    if failure is not None:
        return failure
    if exit_status in (None, 0) or report.shutdown_offset is not None:
        return None
    cause = f"ended with exit status {exit_status} and no exception in the log; {where}"
    return _ending(
        report, None, None, "unknown", cause, "look at the last lines of the log", exit_status, phase
    )


def _never_ready(
    report: LogReport, failure: Failure | None, exit_status: int | None, where: str
) -> Failure | None:
    if failure is not None:
        return failure
    waits = report.notices("shared_memory_wait")
    if waits:
        hit = lookup(waits[-1].text)
        return _ending(
            report,
            None,
            "rank_waits",
            "transient",
            f"{hit.entry.cause}; {where}",
            hit.entry.fix,
            exit_status,
            "start",
        )
    cause = f"not ready within the limit; {where}"
    fix = "raise the start-up limit if the phase was still advancing; otherwise see what that phase waits for"
    return _ending(report, None, "not_ready", "transient", cause, fix, exit_status, "start")


def _ending(
    report: LogReport,
    failure: Failure | None,
    catalogue_id: str | None,
    failure_class: str,
    cause: str,
    fix: str,
    exit_status: int | None,
    phase: str,
) -> Failure:
    if failure is not None:
        return Failure(
            root_line=failure.root_line,
            line_number=failure.line_number,
            offset=failure.offset,
            process=failure.process,
            failure_class=failure_class,
            cause=cause,
            fix=fix,
            catalogue_id=catalogue_id,
            source=None,
            context=failure.context,
            chain=failure.chain,
            phase=phase,
        )
    return Failure(
        root_line=f"exit status {exit_status}" if exit_status is not None else "no exit status",
        line_number=None,
        offset=None,
        process=None,
        failure_class=failure_class,
        cause=cause,
        fix=fix,
        catalogue_id=catalogue_id,
        source=None,
        phase=phase,
    )


def _signal(exit_status: int | None) -> int | None:
    if exit_status is None:
        return None
    if exit_status < 0:
        return -exit_status
    return exit_status - 128 if exit_status > 128 else None
