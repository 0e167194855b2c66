"""Collects what could be a cause: exceptions (per process, tracebacks interleave), deaths, and fatal single
lines.

Nothing is judged here; root_cause.py chooses among the incidents.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator

from scripts.lib.logs.incidents import DEATH, DEATH_WORDS, Incident, death_code
from scripts.lib.logs.model import Line

MAX_INCIDENTS_PER_PLACE = 40
MAX_INCIDENTS = 600
MAX_PLAIN_LINES = 400
_QUIET = ("INFO", "DEBUG")
# How far above its traceback another process's lines may push the record that announces it.
_MARKER_LINES = 20
_MAX_FRAMES = 160
_MAX_MESSAGE_LINES = 12
_MAX_TEXT = 2000
# A block whose process falls silent is given up after this many lines of others.
_PATIENCE = 3000

TRACEBACK = "Traceback (most recent call last)"
_EXCEPTION_GROUP = re.compile(r"^\s*[|+][-+|]* ?")
_EXCEPTION_LINE = re.compile(r"^(?:[A-Za-z_<]\w*>?\.)*[A-Za-z_]\w*(?:\(\w+\))?(?:: |:\s*$|\s*$)")
# Outside a traceback a line must be unmistakable: a class name with a colon and something after it.
_BARE_EXCEPTION = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*(?:Error|Exception|OutOfResources)|Exception)(?:\(\w+\))?: \S"
)
_ARGUMENT_ERROR = re.compile(r"^(?:usage: )?(?P<program>[\w./-]+(?: [\w-]+){0,3}): error: (?P<text>.*)")
_NOT_ARGUMENTS = re.compile(r"^(?:slurmstepd|srun|sbatch|docker|nvcc|gcc|g\+\+|ld|collect2|ninja|make)\b")
_DIRECT = "The above exception was the direct cause"
_DURING = "During handling of the above exception"
_NOT_MESSAGE = re.compile(
    r"^(?:\[rank\d|nanobind|Exception ignored|Process \S+:$|\S+\.py:\d+: "
    r"\w*Warning|\s*warnings\.warn\(|INFO\b|WARNING\b"
    r"|\(Ray|\[20\d\d-|frame #\d+)"
)

# What docker, apptainer and our guard print when nothing ever starts.
_LAUNCHER = re.compile(
    r"^(?:docker: |FATAL:\s+|cannot start \S+: |permission denied while trying to connect to )\S"
)
_CANCELLED = re.compile(r"slurmstepd: error: .*CANCELLED AT .*(?:DUE TO (?P<why>[A-Z ]+))?")

_FATAL_LINE = re.compile(
    r"^(?:Watchdog timeout|.*Watchdog caught collective|RPC call to \w+ timed out|ptxas "
    r"fatal|(?:Prefill|Decode) out of memory"
    r"|Initialization failed\.|Received sigquit|Engine core proc \S+ died)"
)


class _Block:
    """A traceback that is being read."""

    def __init__(
        self, line: Line, marker: str | None, chained: Incident | None, relation: str | None
    ) -> None:
        self.head = line
        self.marker = marker
        self.chained = chained
        self.relation = relation
        self.frames: deque[str] = deque(maxlen=_MAX_FRAMES)
        self.incident: Incident | None = None
        self.linking: str | None = None
        self.last_seen = 0


class TracebackCollector:
    """Feed it every line while `open` is True, otherwise only lines that may begin something."""

    def __init__(self) -> None:
        self.incidents: list[Incident] = []
        self.dropped = 0
        self._blocks: dict[tuple, _Block] = {}
        self._places: Counter[tuple | str] = Counter()
        self._last_error: dict[tuple, tuple[int, str]] = {}
        self._recent_sglang: tuple | None = None
        self._clock = 0

    @property
    def open(self) -> bool:
        """Whether a traceback is unfinished, so that any next line may belong to it."""
        return bool(self._blocks)

    def feed(self, line: Line) -> bool:
        """Take one line; True if it belongs to a traceback or is an incident itself."""
        self._clock += 1
        if not self._blocks and line.level in _QUIET and TRACEBACK not in line.message:
            return False
        key = self._key(line)
        block = self._blocks.get(key)
        if block is not None and self._continue(key, block, line):
            return True
        if TRACEBACK in line.message:
            self._begin(key, line)
            return True
        taken = self._single(line)
        if line.level in ("ERROR", "CRITICAL") and line.message.strip():
            self._last_error[key] = (line.number, line.message.strip())
        self._expire()
        return taken

    def _key(self, line: Line) -> tuple:
        """Where a traceback's lines come from. SGLang heads only the first line; the raw ones below it are
        its own."""
        if line.head in ("vllm", "vllm-old", "json"):
            return (line.process, line.pid, line.source)
        if line.head == "sglang" and TRACEBACK in line.message:
            self._recent_sglang = ("sglang", line.process)
            return self._recent_sglang
        if line.head is None and line.process is None and self._recent_sglang in self._blocks:
            return self._recent_sglang
        return (line.process, line.pid, None)

    def _begin(
        self, key: tuple, line: Line, chained: Incident | None = None, relation: str | None = None
    ) -> None:
        if (
            self._places[key] >= MAX_INCIDENTS_PER_PLACE
            or len(self.incidents) >= MAX_INCIDENTS + MAX_PLAIN_LINES
        ):
            self.dropped += 1
            return
        seen, text = self._last_error.get(key, (0, ""))
        before = line.message.partition(TRACEBACK)[0].strip(" :+|")
        marker = before or (text if line.number - seen <= _MARKER_LINES else None)
        block = _Block(line, marker, chained, relation)
        block.last_seen = self._clock
        self._blocks[key] = block

    def _continue(self, key: tuple, block: _Block, line: Line) -> bool:
        block.last_seen = self._clock
        text = line.message
        if block.incident is None:
            return self._frames(key, block, line, text)
        stripped = text.strip()
        if stripped.startswith(_DIRECT) or stripped.startswith(_DURING):
            block.linking = "direct" if stripped.startswith(_DIRECT) else "during"
            return True
        if TRACEBACK in text:
            incident, relation = block.incident, block.linking
            del self._blocks[key]
            self._begin(key, line, incident if relation else None, relation)
            return True
        if not stripped:
            return True
        if "RayTaskError" in block.incident.text:
            return self._ray(block, line, text)
        ends = line.head not in (None, "vllm", "vllm-old", "json") or (
            line.head is None and _NOT_MESSAGE.match(text)
        )
        if (
            ends
            or block.linking
            or len(block.incident.message) >= _MAX_MESSAGE_LINES
            or self._is_single(line)
        ):
            del self._blocks[key]
            return False
        block.incident.message.append(text.rstrip()[:_MAX_TEXT])
        block.incident.message_lines.append(line.number)
        return True

    def _ray(self, block: _Block, line: Line, text: str) -> bool:
        """Ray prints the remote traceback inside its own exception; the remote exception is the one that
        counts."""
        incident = block.incident
        if text[:1] not in (" ", "\t") and _EXCEPTION_LINE.match(text):
            incident.text, incident.line, incident.offset = (
                text.rstrip()[:_MAX_TEXT],
                line.number,
                line.offset,
            )
        elif len(incident.frames) < _MAX_FRAMES:
            incident.frames.append(text.rstrip()[:400])
        return True

    def _frames(self, key: tuple, block: _Block, line: Line, text: str) -> bool:
        if text[:1] in (" ", "\t"):
            grouped = _EXCEPTION_GROUP.match(text)
            if grouped is None:
                block.frames.append(text.rstrip()[:400])
                return True
            text = text[grouped.end() :]
        if not text.strip() or TRACEBACK in text:
            return True
        if text[:1] in (" ", "\t", "|", "+", "^"):
            block.frames.append(text.rstrip()[:400])
            return True
        if line.head not in (None, "vllm", "vllm-old", "json") or (
            line.head is None and _NOT_MESSAGE.match(text)
        ):
            return False
        if not _EXCEPTION_LINE.match(text):
            return False
        self._finish(key, block, line, text)
        return True

    def _finish(self, key: tuple, block: _Block, line: Line, text: str) -> None:
        incident = self._incident("exception", text, line)
        incident.marker, incident.relation, incident.previous = block.marker, block.relation, block.chained
        incident.frames = list(block.frames)
        incident.start_offset = block.head.offset
        incident.process = block.head.process if key[0] == "sglang" else incident.process
        incident.level = block.head.level or incident.level
        if block.chained is not None:
            block.chained.following = incident
        self._places[key] += 1
        self.incidents.append(incident)
        block.incident = incident

    def _incident(self, kind: str, text: str, line: Line) -> Incident:
        return Incident(
            kind,
            text.rstrip()[:_MAX_TEXT],
            line.number,
            line.offset,
            line.process,
            line.pid,
            line.level,
            line.source,
            line.raw.rstrip()[:_MAX_TEXT],
            start_offset=line.offset,
        )

    def _is_single(self, line: Line) -> bool:
        return DEATH.search(line.message) is not None or line.message.startswith("Process ")

    def _single(self, line: Line) -> bool:
        text = line.message.strip()
        kind, code = None, None
        death = DEATH.search(text) if any(word in text for word in DEATH_WORDS) else None
        argument = _ARGUMENT_ERROR.match(text) if ": error: " in text and line.level is None else None
        if death is not None:
            kind, code = "death", death_code(death)
        elif _CANCELLED.match(text):
            kind = "line"
        elif argument is not None and not _NOT_ARGUMENTS.match(text):
            kind = "argument"
        elif (_LAUNCHER.match(text) and line.head is None) or (
            _BARE_EXCEPTION.match(text) and line.level not in ("INFO", "DEBUG", "WARNING")
        ):
            kind = "bare"
        elif _FATAL_LINE.match(text) or line.level in ("ERROR", "CRITICAL"):
            kind = "line"
        if kind is None or not text:
            return False
        place = (kind, line.process, line.source, text[:60])
        self._places[place] += 1
        plain = self._places["plain lines"] = self._places["plain lines"] + (kind == "line")
        # Plain lines have a limit of their own: a flood of them must not shut out the exception behind it.
        flood = (
            plain > MAX_PLAIN_LINES
            if kind == "line"
            else len(self.incidents) >= MAX_INCIDENTS + MAX_PLAIN_LINES
        )
        if flood or self._places[place] > MAX_INCIDENTS_PER_PLACE:
            self.dropped += 1
            return kind != "line"
        incident = self._incident(kind, text, line)
        incident.code = code
        self.incidents.append(incident)
        return kind != "line"

    def _expire(self) -> None:
        if self._blocks:
            for key in [
                key for key, block in self._blocks.items() if self._clock - block.last_seen > _PATIENCE
            ]:
                del self._blocks[key]

    def chains(self) -> Iterator[list[Incident]]:
        """Exceptions in the order Python chained them, unchained ones alone."""
        for incident in self.incidents:
            if incident.previous is None:
                chain = [incident]
                while chain[-1].following is not None:
                    chain.append(chain[-1].following)
                yield chain
