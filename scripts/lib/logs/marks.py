"""What a line says about the boot beside facts: which phase it has reached, what must be noticed, whether it
stops."""

from __future__ import annotations

import re
from dataclasses import dataclass

from scripts.lib.logs.notices import NOTICES, NoticeRule

_PHASES: tuple[tuple[str, str], ...] = (
    ("non-default args:", "arguments"),
    ("Resolved architecture", "configuration"),
    ("Initializing ", "engine start"),
    ("Init torch distributed", "engine start"),
    ("Starting to load model", "weights"),
    ("Loading model from scratch", "weights"),
    ("Load weight begin", "weights"),
    ("Loading safetensors checkpoint", "weights"),
    ("Loading drafter model", "drafter weights"),
    ("Using cache directory:", "compile"),
    ("Dynamo bytecode transform", "compile"),
    ("Compiling a graph for", "compile"),
    ("Warming up model for the compilation", "compile"),
    ("Initial profiling/warmup", "profiling"),
    ("Memory profiling", "profiling"),
    ("Profiling CUDA graph memory", "profiling"),
    ("Available KV cache memory", "KV cache"),
    ("Memory pool end", "KV cache"),
    ("GPU KV cache size", "KV cache"),
    ("CPU KV cache size", "KV cache"),
    ("XPU KV cache size", "KV cache"),
    ("# GPU blocks", "KV cache"),
    ("Capturing ", "graph capture"),
    ("Capture ", "graph capture"),
    ("init engine (", "engine ready"),
)
_SHUTDOWN = re.compile(
    r"(?:\[shutdown\] .*(?:shutdown triggered|trigger received signal=)|API server: shutdown triggered"
    r"|EngineCore: trigger received signal=|SIGTERM received|Gracefully (?:exiting|stopping)|Shutting down$"
    r"|Received (?:signal )?(?:SIGTERM|SIGINT|15|2)\b)"
)
_SHUTDOWN_STARTS = (
    "[shutdown] ",
    "SIGTERM received",
    "Gracefully ",
    "Shutting down",
    "Received signal",
    "Received SIG",
)

MARK_STARTS = (*(start for start, _ in _PHASES), *(notice.start for notice in NOTICES), *_SHUTDOWN_STARTS)
"""Every text that opens a marked line."""


@dataclass(frozen=True)
class Marks:
    """phase: the start-up phase the line begins; notices: rules that matched, with their matches; stops:
    whether the server was told to stop."""

    phase: str | None
    notices: tuple[tuple[NoticeRule, re.Match[str]], ...]
    stops: bool


def _by_first(starts: tuple) -> dict[str, tuple]:
    groups: dict[str, list] = {}
    for start, thing in starts:
        groups.setdefault(start[0], []).append((start, thing))
    return {first: tuple(group) for first, group in groups.items()}


_ALL_NOTICES = tuple((notice.start, notice) for notice in NOTICES)
_ALL_STOPS = tuple((start, None) for start in _SHUTDOWN_STARTS)
_PHASES_BY_FIRST, _NOTICES_BY_FIRST, _STOPS_BY_FIRST = map(_by_first, (_PHASES, _ALL_NOTICES, _ALL_STOPS))
_STARTS_BY_FIRST = {
    first: tuple(s for s in MARK_STARTS if s[0] == first) for first in {s[0] for s in MARK_STARTS}
}
_NEVER = ("\0",)
_ANY_MARK = re.compile("|".join(map(re.escape, MARK_STARTS)))


def marks_at_start(message: str) -> Marks | None:
    """Marks of a message whose head was recognised: they open it. None if it has none, the usual case."""
    first = message[0]
    if not message.startswith(_STARTS_BY_FIRST.get(first, _NEVER)):
        return None
    phases, notices = _PHASES_BY_FIRST.get(first, ()), _NOTICES_BY_FIRST.get(first, ())
    return _marks(message, message.startswith, phases, notices, _STOPS_BY_FIRST.get(first, ()))


def marks_anywhere(message: str) -> Marks | None:
    """Marks of a line without a known head: they may stand anywhere in it. None if it has none."""
    if not _ANY_MARK.search(message):
        return None
    return _marks(message, message.__contains__, _PHASES, _ALL_NOTICES, _ALL_STOPS)


def _marks(message: str, has, phases: tuple, notices: tuple, stops: tuple) -> Marks:
    phase = None
    for start, name in phases:
        if has(start):
            phase = name
    found = [(notice, notice.pattern.search(message)) for start, notice in notices if has(start)]
    stopping = any(has(start) for start, _ in stops) and _SHUTDOWN.search(message) is not None
    return Marks(phase, tuple(pair for pair in found if pair[1] is not None), stopping)


def phase_of_bar(raw: bytes) -> str | None:
    """The phase a progress bar belongs to."""
    if b"Capturing " in raw:
        return "graph capture"
    return "weights" if b"Loading safetensors checkpoint" in raw else None
