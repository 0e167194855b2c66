"""How much an incident counts: what tier of evidence it is, how deep the process, what in it is the
telling text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

from scripts.lib.logs.catalogue import Hit, lookup
from scripts.lib.logs.incidents import Incident
from scripts.lib.logs.model import LogReport

WRAPPER = re.compile(
    r"Engine core initialization failed|Engine process failed to start|Frontend process failed during "
    r"engine core"
    r"|WorkerProc initialization failed|EngineDeadError|Engine loop is (?:dead|not running)|MPClientEngine"
    r"|Received sigquit|^Process "
    r"\S+:|SystemExit|KeyboardInterrupt|Cancelled|cancelled|BrokenPipeError|EOFError"
    r"|ConnectionResetError|DistNetworkError[\s\S]*Connection closed by peer|Worker proc \S+ died "
    r"unexpectedly"
    r"|Engine core proc \S+ died|GeneratorExit|AsyncEngineDeadError|MQEngineDeadError|Engine is not running"
    r"|Background loop (?:has errored|is stopped)|Executor failed|ChildProcessError|ProcessRaisedException"
    r"|Initialization failed\. warmup error|Subprocess \S+ \(pid=\d+\) crashed|ActorDiedError|RayActorError"
)
STOPPED = re.compile(r"^(?:\w+\.)*(?:SystemExit|KeyboardInterrupt|CancelledError|GeneratorExit)\b")
QUOTED = re.compile(r"Worker failed with error ['\"](?P<text>[\s\S]*)['\"], please check the stack trace")
VICTIM = re.compile(
    r"NCCL|ncclRemoteError|Gloo|gloo|Connection "
    r"(?:reset|closed|refused)|DistStoreError|DistBackendError|timed out"
    r"|TimeoutError|Timeout\b|Watchdog caught collective|Broken pipe|monitoredBarrier"
)
_NOISE = re.compile(
    r"[Aa]utotun\w+|Custom allreduce is disabled|Ignore import error|resource_tracker: |Error retrieving "
    r"(?:file list|safetensors)"
    r"|^Dumping (?:input data|scheduler)|Failed to (?:read|load) (?:generation|file) "
)
_TEARDOWN = re.compile(r"\bin (?:shutdown|_?cleanup\w*|__del__|_finalize\w*|atexit\w*)\b")
_LOOKUP_ERROR = re.compile(
    r"^(?:\w+\.)*(?:KeyError|AttributeError|IndexError|StopIteration|ImportError|ModuleNotFoundError"
    r"|HTTPError)\b"
)
_PYDANTIC = re.compile(r"\d+ validation errors? for (?P<model>\w+)")
_PYDANTIC_END = re.compile(r" \[type=\w+[\s\S]*$")


@dataclass(frozen=True)
class Candidate:
    """An incident that may be the cause: its telling text and that text's line, tier, depth of the process
    (3 worker, 2 engine core, 1 API server, 0 not known), catalogue hit."""

    incident: Incident
    text: str
    line: int
    tier: Tier
    depth: int
    hit: Hit | None


class Tier(IntEnum):
    """Kinds of evidence, the strongest first."""

    EXCEPTION = 0
    DEATH = 1  # a process was killed
    QUOTED = 2  # a wrapper that quotes the cause, whose own traceback is elsewhere
    VICTIM = 3  # a rank that noticed the failure of another
    KNOWN_LINE = 4  # a fatal line of the catalogue without an exception
    LATE = 5  # printed after the shutdown of a server that never served
    REQUEST = 6  # one refused request
    NOT_FATAL = 7  # a request handler's exception that the server survived
    WRAPPER = 8  # only reports that something failed elsewhere
    IGNORED = 9


def judge(report: LogReport, chain: list[Incident], ready: bool | None) -> Candidate | None:
    """The member of a chain that says most, with its rank; None if the chain is no evidence."""
    late = report.shutdown_offset is not None and chain[0].start_offset >= report.shutdown_offset
    if late and report.ready:
        return None
    ranked = [_rank(report, incident, ready) for incident in chain]
    best = min(tier for tier, _, _, _ in ranked)
    members = [(incident, rank) for incident, rank in zip(chain, ranked, strict=True) if rank[0] == best]
    incident, (tier, hit, text, line) = _most_telling(members)
    if tier == Tier.IGNORED or (late and tier > Tier.VICTIM):
        return None
    if late:
        # A server that fails while starting tears its engine down first and prints its traceback last.
        tier = Tier.LATE
    return Candidate(incident, text, line, tier, depth_of(chain[0]), hit)


def _most_telling(members: list) -> tuple:
    """Within one chain: the most specific catalogue entry, else the first exception, else what followed a
    mere lookup."""
    useful = [
        member for member in members if not (member[0].relation and _TEARDOWN.search(member[0].stack))
    ] or members
    known = [
        member
        for member in useful
        if member[1][1] is not None and member[1][1].entry.failure_class != "unknown"
    ]
    if known:
        return min(known, key=lambda member: member[1][1].entry.order)
    if len(useful) > 1 and useful[1][0].relation == "during" and _LOOKUP_ERROR.match(useful[0][0].text):
        return useful[1]
    return useful[0]


def _rank(report: LogReport, incident: Incident, ready: bool | None) -> tuple[Tier, Hit | None, str, int]:
    """(tier, catalogue hit, the text that counts, its line number)."""
    text, line = _telling_text(incident)
    phase = phase_of(report, incident, ready)
    hit = lookup(incident.detail, incident.stack, phase or "run")
    if incident.kind in ("line", "bare") and _NOISE.search(incident.text):
        return Tier.IGNORED, hit, text, line
    if incident.level in ("INFO", "DEBUG", "WARNING") and incident.kind != "exception":
        return Tier.IGNORED, hit, text, line
    if incident.kind == "death":
        # A child that exits by itself after an exception is a wrapper; one that was killed is evidence of its
        # own.
        killed = incident.code is not None and incident.code < 0 and incident.code != -15
        if killed and hit is None:
            hit = lookup("OOMKilled" if incident.code == -9 else "Fatal Python error: signal")
        return (Tier.DEATH if killed else Tier.WRAPPER), hit, text, line
    quoted = QUOTED.search(incident.detail)
    if quoted is not None:
        tier = Tier.VICTIM if VICTIM.search(quoted["text"]) else Tier.QUOTED
        return tier, lookup(quoted["text"], "", phase or "run"), quoted["text"], line
    if WRAPPER.search(incident.text):
        return Tier.WRAPPER, hit, text, line
    if incident.kind == "line":
        return (Tier.IGNORED if hit is None else _line_tier(hit)), hit, text, line
    if hit is not None and hit.entry.scope == {"q"}:
        return Tier.REQUEST, hit, text, line
    if incident.level in ("INFO", "DEBUG", "WARNING") or not _fatal(report, incident):
        return Tier.NOT_FATAL, hit, text, line
    return (Tier.VICTIM if VICTIM.search(incident.detail) else Tier.EXCEPTION), hit, text, line


def _line_tier(hit: Hit) -> Tier:
    if hit.entry.scope & {"w", "h"}:
        return Tier.IGNORED
    if hit.entry.failure_class == "unknown":
        return Tier.WRAPPER
    return Tier.REQUEST if hit.entry.scope == {"q"} else Tier.KNOWN_LINE


def _fatal(report: LogReport, incident: Incident) -> bool:
    """An API server survives exceptions in its request handlers; everything deeper, or before readiness,
    is fatal."""
    served = report.ready_offset is not None and incident.start_offset > report.ready_offset
    return not served or depth_of(incident) >= 2 or "output_handler failed" in (incident.marker or "")


def depth_of(incident: Incident) -> int:
    """3 worker or scheduler, 2 engine core, 1 API server, 0 not known; by process name, else by where the
    code ran."""
    name = incident.process or ""
    if ("Worker" in name and not name.startswith("MapWorker")) or re.match(
        r"(?:DP|TP|PP|EP|ATTN|MOE)\w*\d", name
    ):
        return 3
    if name.startswith("EngineCore"):
        return 2
    if name.lower().startswith("apiserver"):
        return 1
    place = f"{incident.marker or ''}\n{incident.source or ''}\n{incident.stack}"
    for depth, pattern in (
        (
            3,
            r"Scheduler hit an exception|multiproc_executor\.py:|WorkerProc|in "
            r"worker_(?:main|busy_loop)|in run_scheduler_process",
        ),
        (2, r"EngineCore|in run_engine_core|in run_mp_engine|in run_engine_loop|core\.py:"),
        (1, r"in run_server|api_server|entrypoints/|in uvicorn|Exception in ASGI"),
        (2, r"/worker/|model_executor/|model_runner"),
    ):
        if re.search(pattern, place):
            return depth
    return 0


def phase_of(report: LogReport, incident: Incident, ready: bool | None) -> str | None:
    """start, run, or None for a fragment that holds no line of either."""
    if incident.kind == "argument":
        return "start"
    if ready is not None:
        return "run" if ready else "start"
    if report.ready_offset is not None:
        return "run" if incident.start_offset > report.ready_offset else "start"
    if len(report.intervals) and report.intervals[0].offset < incident.start_offset:
        return "run"
    return "start" if report.phase is not None else None


def _telling_text(incident: Incident) -> tuple[str, int]:
    """The decisive text and its line: for pydantic the validator's words, otherwise the exception line."""
    model = _PYDANTIC.search(incident.text)
    if model is None or not incident.message:
        return incident.text.strip(), incident.line
    parts: list[str] = []
    number = incident.message_lines[0] if incident.message_lines else incident.line
    for at, part in zip(incident.message_lines, incident.message, strict=True):
        stripped = part.strip()
        if stripped.startswith("For further information"):
            break
        if not parts:
            number = at
        ended = _PYDANTIC_END.search(stripped)
        parts.append(_PYDANTIC_END.sub("", stripped))
        if ended is not None:
            break
    if not parts:
        return incident.text.strip(), incident.line
    # A validator speaks in one line; a field error is the field's name and, below it, the complaint.
    told = parts[:1] if parts[0].startswith("Value error") else parts[:2]
    return ": ".join(filter(None, told)).removeprefix("Value error, "), number
