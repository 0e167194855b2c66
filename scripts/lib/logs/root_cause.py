"""Finds the cause of a failure among all the exceptions a dying server prints; the last one is usually not
it.

Order of belief: what precedes the shutdown; real exceptions before deaths by signal before victims of another
rank before fatal lines; the deepest process (worker, engine core, API server), there the earliest. Wrappers,
which only report that something failed elsewhere, count when nothing else is left.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from scripts.lib.logs.endings import failure_of_ending
from scripts.lib.logs.incidents import Incident
from scripts.lib.logs.model import Failure, Link, LogReport
from scripts.lib.logs.normalise import normalise
from scripts.lib.logs.ranking import QUOTED, STOPPED, VICTIM, WRAPPER, Candidate, Tier, judge, phase_of
from scripts.lib.logs.tracebacks import TracebackCollector

_MAX_CHAIN = 20
_DEPTH_NAMES = {3: "Worker", 2: "EngineCore", 1: "APIServer"}
# Entries that only say that something failed elsewhere: how the process ended says more.
_WRAPPER_ENTRIES = frozenset({"engine_dead", "child_failed_sglang"})
ENDED = ("unknown", "running", "exited", "stopped", "timeout")
"""How the server's life ended, as the caller knows it: stopped means the caller stopped it, timeout that
it never served."""


def find_failure(
    source: LogReport | str | Path,
    exit_status: int | None = None,
    ended: str = "unknown",
    ready: bool | None = None,
) -> Failure | None:
    """Why the server of this log (a report or a path) failed, or None if nothing says that it did.

    exit_status: as subprocess gives it (negative signal) or as a shell does (128 + signal). 0 proves nothing,
    engines die with it; it never hides a cause that the log names. ended: one of ENDED. ready: whether the
    server had served, when the caller knows better than the log. Raises OSError for a path that cannot be
    read, ValueError for another `ended`.
    """
    if ended not in ENDED:
        raise ValueError(f"ended={ended!r} is none of {', '.join(ENDED)}")
    if not isinstance(source, LogReport):
        from scripts.lib.logs.parse import parse_path

        source = parse_path(Path(source))
    failure = _from_log(source, ready)
    if failure is not None and (failure.catalogue_id not in _WRAPPER_ENTRIES or exit_status in (None, 0)):
        return failure
    return failure_of_ending(source, exit_status, ended, failure)


def failure_of_line(text: str) -> Failure | None:
    """The failure a single piece of log text stands for, without any other context."""
    collector = TracebackCollector()
    for number, part in enumerate(text.splitlines() or [""], 1):
        for line in normalise(part, 0, number):
            collector.feed(line)
    return _from_log(LogReport(incidents=collector), None)


def _from_log(report: LogReport, ready: bool | None) -> Failure | None:
    collector: TracebackCollector | None = report.incidents
    if collector is None or not collector.incidents:
        return None
    candidates = [
        candidate for chain in collector.chains() if (candidate := judge(report, chain, ready)) is not None
    ]
    if _proves_death([one for one in candidates if one.tier == Tier.WRAPPER]):
        # The engine died: what request handlers survived cannot be why.
        candidates = [one for one in candidates if one.tier not in (Tier.REQUEST, Tier.NOT_FATAL)]
    if not candidates:
        return None
    candidates.sort(key=lambda one: (one.tier, _says_nothing(one), -one.depth, one.incident.start_offset))
    chosen = candidates[0]
    if chosen.tier >= Tier.WRAPPER and not _proves_death(candidates):
        return None
    return _failure(report, chosen, collector.incidents, ready)


def _proves_death(candidates: list[Candidate]) -> bool:
    """Wrappers alone: the engine died without a word, unless somebody simply stopped the server."""
    return any(not STOPPED.match(candidate.incident.text) for candidate in candidates)


def _says_nothing(candidate: Candidate) -> bool:
    """A wrapper without more than "see above"; one that carries an exit code says something."""
    hit = candidate.hit
    return candidate.tier == Tier.WRAPPER and (hit is None or hit.entry.id in _WRAPPER_ENTRIES)


def _failure(
    report: LogReport, chosen: Candidate, incidents: Iterable[Incident], ready: bool | None
) -> Failure:
    incident, hit = chosen.incident, chosen.hit
    phase = phase_of(report, incident, ready) or "unknown"
    fatal = chosen.tier not in (Tier.REQUEST, Tier.NOT_FATAL)
    shared = {
        "root_line": chosen.text,
        "line_number": chosen.line,
        "offset": incident.offset,
        "process": incident.process or _process_name(report, chosen.depth),
        "context": _context(incident),
        "chain": _chain(report, chosen, incidents),
        "phase": phase,
        "fatal": fatal,
    }
    if hit is None:
        when = {"start": ", while starting", "run": ", at run time"}.get(phase, "")
        return Failure(
            failure_class="unknown",
            cause=f"not in the catalogue ({shared['process'] or 'the server'}{when}): "
            f"{chosen.text.partition(chr(10))[0]}",
            fix="read the root line and the frames above it; add a catalogue entry once the cause is known",
            catalogue_id=None,
            source=None,
            **shared,
        )
    entry = hit.entry
    return Failure(
        failure_class=_class_in_phase(entry.failure_class, phase),
        cause=entry.cause,
        fix=entry.fix,
        catalogue_id=entry.id,
        source=entry.source,
        values=hit.values,
        memory_direction=entry.memory,
        **shared,
    )


def _class_in_phase(failure_class: str, phase: str) -> str:
    """A run-time resource fault that already strikes at start rules out the server, not only a
    concurrency."""
    if failure_class == "resource_runtime" and phase == "start":
        return "resource_start"
    return failure_class


def _process_name(report: LogReport, depth: int) -> str | None:
    return "Scheduler" if report.engine == "sglang" and depth == 3 else _DEPTH_NAMES.get(depth)


def _context(incident: Incident) -> tuple[str, ...]:
    frames = incident.frames[-4:]
    lines = ([incident.marker] if incident.marker else []) + frames + [incident.text] + incident.message[:4]
    return tuple(line.rstrip()[:400] for line in lines if line.strip())


def _chain(report: LogReport, chosen: Candidate, incidents: Iterable[Incident]) -> tuple[Link, ...]:
    """How the failure spread: the cause first, then every distinct exception before the shutdown, in log
    order."""
    links = [Link("cause", chosen.text, chosen.line, chosen.incident.process)]
    seen = {(chosen.incident.process, chosen.incident.text)}
    for incident in incidents:
        key = (incident.process, incident.text)
        if key in seen or (incident.kind == "line" and not WRAPPER.search(incident.text)):
            continue
        if report.shutdown_offset is not None and incident.start_offset >= report.shutdown_offset:
            continue
        seen.add(key)
        role = "wrapper" if WRAPPER.search(incident.text) or QUOTED.search(incident.text) else incident.kind
        if role == "exception" and VICTIM.search(incident.detail):
            role = "victim"
        if incident.relation:
            role = "direct consequence" if incident.relation == "direct" else "raised while handling"
        links.append(Link(role, incident.text[:400], incident.line, incident.process))
        if len(links) >= _MAX_CHAIN:
            break
    return tuple(links)


def errors_between(report: LogReport, start: int, end: int) -> list[str]:
    """Errors of the engine that began in the byte window [start, end), the most telling first, without refused
    requests (their clients know), the noise of a log, and a server that is being stopped."""
    collector: TracebackCollector | None = report.incidents
    if collector is None:
        return []
    inside = [chain for chain in collector.chains() if start <= chain[0].start_offset < end]
    candidates = [candidate for chain in inside if (candidate := judge(report, chain, True)) is not None]
    telling = [one for one in candidates if one.tier not in (Tier.REQUEST, Tier.IGNORED)]
    telling.sort(key=lambda one: (one.tier, one.incident.start_offset))
    return [one.text for one in telling if not STOPPED.match(one.incident.text)]
