"""From physical log bytes to logical lines: the layers around what the program said, taken off one by one.

Order: split on newline and carriage return, drop colour codes, strip outer timestamps and container prefixes,
strip process prefixes (repeatedly, they nest under Ray), strip the record head of vLLM, SGLang, uvicorn or a
JSON formatter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from scripts.lib.logs.model import Line

MAX_LINE_BYTES = 256 * 1024
_MAX_NESTING = 8

_ESCAPE = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\r\n]*(?:\x07|\x1b\\)|[@-Z\\^_])"
# How collectors and terminals spell the escape character when they make it printable.
_SPELLED = r"(?:ESC|\\x1b|\\u001b|\\033|#033|\^\[)\[[0-9;]*m"
ANSI = re.compile(f"{_ESCAPE}|{_SPELLED}")
_ESCAPE_BYTES = re.compile(_ESCAPE.encode("ascii"))
_ANSI_BYTES = re.compile(f"{_ESCAPE}|{_SPELLED}".encode("ascii"))
_SPELLED_TEXT = ("ESC[", "1b[", "033[", "^[[")
_SPELLED_MARKS = tuple(mark.encode() for mark in _SPELLED_TEXT)

_ISO = (
    r"\[?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?(?:[ \t]|$)"
    r"(?:std(?:out|err) [FP] )?(?:\S+ [^\s\[:()]+\[\d+\]: )?"
)
_SYSLOG = r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)? \S+ [^\s\[:()]+(?:\[\d+\])?: "
_COMPOSE = r"[A-Za-z][\w.-]*\s*\| "
_RANK = r"\[rank\d+\]:(?: |(?=\[))?"
_KUBERNETES = r"\[pod/[^\]\s]+\] "
_SRUN = r"\s*\d{1,4}: (?=[(\[A-Z])"
OUTER = re.compile(f"(?:{_ISO}|{_SYSLOG}|{_COMPOSE}|{_RANK}|{_KUBERNETES}|{_SRUN})+")

OUTER_BYTES = re.compile(OUTER.pattern.encode())

_PROCESS = r"\((?P<proc>[A-Za-z][^()]*(?:\([^()]*\)[^()]*)?) pid=(?P<pid>\d{1,10})(?:, ip=[\w.:]+)?\)"
PROCESS = re.compile(_PROCESS + r"[ \t]?")
_PROCESS_AT_END = re.compile(rf"(?:{_PROCESS}\s*)$")

_LEVELS = "DEBUG|INFO|WARNING|ERROR|CRITICAL"
VLLM_HEAD = re.compile(
    rf"(?P<level>{_LEVELS}) (?P<ts>(?:\d{{4}}-)?\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?) "
    r"(?P<open>\[?)(?P<file>[\w./\u2026-]+:\d+)\] ?"
)
# Most records need no peeling: one process prefix, one head, nothing glued, no colours.
_USUAL_RECORD = re.compile(
    rf"(?:\(([A-Za-z]\w*) pid=(\d{{1,10}})\) )?({_LEVELS}) (\d\d-\d\d \d\d:\d\d:\d\d) \[([\w./-]+:\d+)\] "
    rf"?(.*)"
)
_UNUSUAL = re.compile(r"\] .* pid=|x across cluster\]|\x1b|\[0?m|\[[01];")
SGLANG_HEAD = re.compile(
    r"\[(?P<ts>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?)(?P<ranks>(?: [A-Z_]+\d+)*)\](?: |$)"
)
_UVICORN_HEAD = re.compile(rf"(?P<level>{_LEVELS}):\s+")
_GLOG_HEAD = re.compile(r"\[(?P<level>[IWEF])\d{4} (?P<ts>\d\d:\d\d:\d\d\.\d+) (?P<file>[\w./-]+:\d+)\] ?")
_LOGGING_HEAD = re.compile(rf"(?P<ts>\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d,\d+) - (?P<level>{_LEVELS}) - ")
_GLOG_LEVELS = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "CRITICAL"}
_RAY_REPEAT = re.compile(r"\s*\[repeated (\d{1,6})x across cluster\](?: \(Ray deduplicates logs.*)?\s*$")

_OTHER_HEADS = ((_UVICORN_HEAD, "uvicorn"), (_GLOG_HEAD, "glog"), (_LOGGING_HEAD, "logging"))
# What formatters and collectors call the parts of a record.
JSON_BODY = ("message", "msg", "log", "event", "MESSAGE")
_LEVEL_KEYS = ("levelname", "level", "severity")
JSON_STAMP = ("asctime", "timestamp", "time", "ts")
_SOURCE_KEYS = ("filename", "name", "logger")
JSON_PROCESS = ("processName", "process_name")
_PID_KEYS = ("process", "pid")
JSON_TRACE = ("exc_info", "exc_text", "exception", "traceback", "stack_info")

# A record that another process's unfinished line swallowed; only known process names, since prompts quote
# anything.
_GLUED = re.compile(
    r"(?<=\S)\s*(?=\((?:APIServer|ApiServer_\d+|EngineCore\w*|\w*Worker\w*)[^()]* pid=\d+\) "
    rf"(?:{_LEVELS}) \d\d-\d\d \d\d:)"
)
_QUOTES_TEXT = re.compile(r"Received request|prompt(?:_token_ids)?: ")


def iter_lines(chunks: Iterable[bytes]) -> Iterator[Line]:
    """Every logical line of a log given as byte chunks, cut anywhere."""
    offset, number = 0, 1
    for piece in _pieces(chunks):
        yield from normalise(decode(piece.rstrip(b"\r\n")), offset, number)
        offset += len(piece)
        number += piece.endswith(b"\n")


def _pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines with their separators. A carriage return at a cut may be half of CRLF, so it is held back."""
    tail = b""
    for chunk in chunks:
        pieces = (tail + chunk).splitlines(keepends=True)
        tail = pieces.pop() if pieces and not pieces[-1].endswith(b"\n") else b""
        yield from pieces
    yield from tail.splitlines(keepends=True)


def without_colours(data: bytes) -> bytes | None:
    """data without colour codes, line breaks untouched; None if it has none, the usual case in a file."""
    # Every colour is reset by a code that begins with 0, so one short search rules the spellings out.
    if b"[0" in data and any(mark in data for mark in _SPELLED_MARKS):
        clean = _ANSI_BYTES.sub(b"", data)
    elif b"\x1b" in data:
        clean = _ESCAPE_BYTES.sub(b"", data)
    else:
        return None
    return clean if len(clean) != len(data) else None


def decode(raw: bytes) -> str:
    """UTF-8 text of one physical line, undecodable bytes replaced, over-long lines cut at MAX_LINE_BYTES."""
    return raw[:MAX_LINE_BYTES].decode("utf-8", "replace")


def normalise(text: str, offset: int, number: int) -> list[Line]:
    """The logical lines in one physical line: usually one, more when records are glued or JSON carries
    newlines."""
    usual = _USUAL_RECORD.fullmatch(text)
    if usual is not None and not _UNUSUAL.search(text):
        process, pid, level, stamp, source, message = usual.groups()
        pid = None if pid is None else int(pid)
        return [Line(offset, number, process, pid, level, stamp, source, message, text, "vllm")]
    return _Physical(text, offset, number).lines(without_colour_codes(text), None, None, 0)


def without_colour_codes(text: str) -> str:
    """text without colour codes, whether real or spelled out."""
    if "\x1b" in text or ("[0" in text and any(mark in text for mark in _SPELLED_TEXT)):
        return ANSI.sub("", text)
    return text


class _Physical:
    """One physical line; its methods take the text that is left, and the process whose prefix came off
    last."""

    def __init__(self, raw: str, offset: int, number: int) -> None:
        self.raw, self.offset, self.number = raw, offset, number

    def lines(self, text: str, process: str | None, pid: int | None, depth: int) -> list[Line]:
        for _ in range(_MAX_NESTING):
            if text.startswith("("):
                found = PROCESS.match(text)
                if found is None:
                    break
                process, pid = found["proc"], int(found["pid"])
            else:
                found = OUTER.match(text)
                if found is None or not found.end():
                    break
            text = text[found.end() :]
        if text.startswith("{") and depth < _MAX_NESTING and text.rstrip().endswith("}"):
            lines = self._json(text, process, pid, depth)
            if lines is not None:
                return lines
        head = VLLM_HEAD.match(text) or (VLLM_HEAD.search(text) if "] " in text else None)
        if head is not None and depth < _MAX_NESTING:
            return self._vllm(text, head, process, pid, depth)
        head = SGLANG_HEAD.search(text) if "[20" in text else None
        if head is not None and (head.start() == 0 or text[head.start() - 1] in "]%}|"):
            return self._sglang(text, head, process, pid)
        return [self._plain(text, process, pid)]

    def _line(
        self,
        process: str | None,
        pid: int | None,
        level: str | None,
        stamp: str | None,
        source: str | None,
        message: str,
        head: str | None,
    ) -> Line:
        repeated = 0
        if "x across cluster]" in message:
            found = _RAY_REPEAT.search(message)
            if found is not None:
                message, repeated = message[: found.start()], int(found[1])
        return Line(
            self.offset, self.number, process, pid, level, stamp, source, message, self.raw, head, repeated
        )

    def _vllm(
        self, text: str, head: re.Match[str], process: str | None, pid: int | None, depth: int
    ) -> list[Line]:
        lines = []
        before = text[: head.start()]
        if before.strip():
            owner, owner_pid = process, pid
            while (prefix := _PROCESS_AT_END.search(before)) is not None:
                owner, owner_pid = prefix["proc"], int(prefix["pid"])
                before = before[: prefix.start()]
            if before.strip():
                lines.append(self._plain(before, process, pid))
            process, pid = owner, owner_pid
        message, glued = text[head.end() :], ""
        cut = _GLUED.search(message) if " pid=" in message else None
        if cut is not None and not _QUOTES_TEXT.search(message[: cut.start()]):
            message, glued = message[: cut.start()], message[cut.end() :]
        kind = "vllm" if head["open"] else "vllm-old"
        lines.append(self._line(process, pid, head["level"], head["ts"], head["file"], message, kind))
        if glued:
            lines.extend(self.lines(glued, None, None, depth + 1))
        return lines

    def _sglang(self, text: str, head: re.Match[str], process: str | None, pid: int | None) -> list[Line]:
        lines = []
        if text[: head.start()].strip():
            lines.append(self._plain(text[: head.start()], process, pid))
        message, level = text[head.end() :], None
        inner = _UVICORN_HEAD.match(message)
        if inner is not None:
            level, message = inner["level"], message[inner.end() :]
        ranks = head["ranks"].strip() or process
        lines.append(self._line(ranks, pid, level, head["ts"], None, message, "sglang"))
        return lines

    def _plain(self, text: str, process: str | None, pid: int | None) -> Line:
        for pattern, kind in _OTHER_HEADS:
            head = pattern.match(text)
            if head is not None:
                found = head.groupdict()
                level = _GLOG_LEVELS.get(found["level"], found["level"])
                rest = text[head.end() :]
                return self._line(process, pid, level, found.get("ts"), found.get("file"), rest, kind)
        return self._line(process, pid, None, None, None, text, None)

    def _json(self, text: str, process: str | None, pid: int | None, depth: int) -> list[Line] | None:
        """A JSON formatter's record, or a collector's envelope around a plain line; None if it is neither."""
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            return None
        body = first_text(record, JSON_BODY) if isinstance(record, dict) else None
        if body is None:
            return None
        level = first_text(record, _LEVEL_KEYS)
        level = level.upper() if level and level.isalpha() else None
        stamp, source = first_text(record, JSON_STAMP), first_text(record, _SOURCE_KEYS)
        process = first_text(record, JSON_PROCESS) or process
        digits = first_text(record, _PID_KEYS)
        pid = int(digits) if digits and digits.isdecimal() and len(digits) <= 10 else pid
        trace = first_text(record, JSON_TRACE)
        body = f"{body}\n{trace}" if trace else body
        lines: list[Line] = []
        for part in body.splitlines() or [""]:
            for line in self.lines(without_colour_codes(part), process, pid, depth + 1):
                named = line if line.level else line._replace(level=level)
                lines.append(
                    named._replace(
                        timestamp=line.timestamp or stamp,
                        source=line.source or source,
                        head=line.head or "json",
                    )
                )
        return lines


def first_text(record: dict, keys: tuple[str, ...]) -> str | None:
    """The first of keys that holds text or a number, as text; None if none does."""
    for key in keys:
        value = record.get(key)
        if value.__class__ is str:
            if value:
                return value
        elif value.__class__ is int or value.__class__ is float:
            return str(value)
    return None
