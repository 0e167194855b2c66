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
_SPELLED_MARKS = (b"ESC[", b"1b[", b"033[", b"^[[")

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

_PROCESS = r"\((?P<proc>[A-Za-z][^()]*(?:\([^()]*\)[^()]*)?) pid=(?P<pid>\d{1,10})(?:, ip=[\w.:]+)?\)"
PROCESS = re.compile(_PROCESS + r"[ \t]?")
_PROCESS_AT_END = re.compile(rf"(?:{_PROCESS}\s*)$")

_LEVELS = "DEBUG|INFO|WARNING|ERROR|CRITICAL"
VLLM_HEAD = re.compile(
    rf"(?P<level>{_LEVELS}) (?P<ts>(?:\d{{4}}-)?\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?) "
    r"(?P<open>\[?)(?P<file>[\w./\u2026-]+:\d+)\] ?"
)
SGLANG_HEAD = re.compile(
    r"\[(?P<ts>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?)(?P<ranks>(?: [A-Z_]+\d+)*)\](?: |$)"
)
_UVICORN_HEAD = re.compile(rf"(?P<level>{_LEVELS}):\s+")
_GLOG_HEAD = re.compile(r"\[(?P<level>[IWEF])\d{4} (?P<ts>\d\d:\d\d:\d\d\.\d+) (?P<file>[\w./-]+:\d+)\] ?")
_LOGGING_HEAD = re.compile(rf"(?P<ts>\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d,\d+) - (?P<level>{_LEVELS}) - ")
_GLOG_LEVELS = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "CRITICAL"}
_RAY_REPEAT = re.compile(r"\s*\[repeated (\d{1,6})x across cluster\](?: \(Ray deduplicates logs.*)?\s*$")

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
    if any(mark in data for mark in _SPELLED_MARKS):
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
    raw = text
    if "[" in text:
        text = ANSI.sub("", text)
    return _strip(text, offset, number, raw, None, None, 0)


def _strip(
    text: str, offset: int, number: int, raw: str, process: str | None, pid: int | None, depth: int
) -> list[Line]:
    text, process, pid = _strip_prefixes(text, process, pid)
    if depth < _MAX_NESTING:
        if text.startswith("{") and text.rstrip().endswith("}"):
            lines = _from_json(text, offset, number, raw, process, pid, depth)
            if lines is not None:
                return lines
        head = VLLM_HEAD.search(text)
        if head is not None:
            return _vllm_record(text, head, offset, number, raw, process, pid, depth)
        head = SGLANG_HEAD.search(text) if "[" in text else None
        if head is not None and (head.start() == 0 or text[head.start() - 1] in "]%}|"):
            return _sglang_record(text, head, offset, number, raw, process, pid)
    return [_plain(text, offset, number, raw, process, pid)]


def _strip_prefixes(text: str, process: str | None, pid: int | None) -> tuple[str, str | None, int | None]:
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
    return text, process, pid


def _vllm_record(
    text: str,
    head: re.Match[str],
    offset: int,
    number: int,
    raw: str,
    process: str | None,
    pid: int | None,
    depth: int,
) -> list[Line]:
    lines = []
    before = text[: head.start()]
    if before.strip():
        owner, owner_pid = process, pid
        while (prefix := _PROCESS_AT_END.search(before)) is not None:
            owner, owner_pid = prefix["proc"], int(prefix["pid"])
            before = before[: prefix.start()]
        if before.strip():
            lines.append(_plain(before, offset, number, raw, process, pid))
        process, pid = owner, owner_pid
    message, glued = text[head.end() :], ""
    cut = _GLUED.search(message)
    if cut is not None and not _QUOTES_TEXT.search(message[: cut.start()]):
        message, glued = message[: cut.start()], message[cut.end() :]
    message, repeated = _ray_repeats(message)
    kind = "vllm" if head["open"] else "vllm-old"
    lines.append(
        Line(
            offset,
            number,
            process,
            pid,
            head["level"],
            head["ts"],
            head["file"],
            message,
            raw,
            kind,
            repeated,
        )
    )
    if glued:
        lines.extend(_strip(glued, offset, number, raw, None, None, depth + 1))
    return lines


def _sglang_record(
    text: str, head: re.Match[str], offset: int, number: int, raw: str, process: str | None, pid: int | None
) -> list[Line]:
    lines = []
    if text[: head.start()].strip():
        lines.append(_plain(text[: head.start()], offset, number, raw, process, pid))
    message, repeated = _ray_repeats(text[head.end() :])
    level = None
    inner = _UVICORN_HEAD.match(message)
    if inner is not None:
        level, message = inner["level"], message[inner.end() :]
    ranks = head["ranks"].strip() or process
    lines.append(Line(offset, number, ranks, pid, level, head["ts"], None, message, raw, "sglang", repeated))
    return lines


def _plain(text: str, offset: int, number: int, raw: str, process: str | None, pid: int | None) -> Line:
    for pattern, kind in ((_UVICORN_HEAD, "uvicorn"), (_GLOG_HEAD, "glog"), (_LOGGING_HEAD, "logging")):
        head = pattern.match(text)
        if head is not None:
            found = head.groupdict()
            level = _GLOG_LEVELS.get(found["level"], found["level"])
            message, repeated = _ray_repeats(text[head.end() :])
            return Line(
                offset,
                number,
                process,
                pid,
                level,
                found.get("ts"),
                found.get("file"),
                message,
                raw,
                kind,
                repeated,
            )
    message, repeated = _ray_repeats(text)
    return Line(offset, number, process, pid, None, None, None, message, raw, None, repeated)


def _ray_repeats(message: str) -> tuple[str, int]:
    if "x across cluster]" not in message:
        return message, 0
    found = _RAY_REPEAT.search(message)
    return (message, 0) if found is None else (message[: found.start()], int(found[1]))


def _first(record: dict, *keys: str) -> str | None:
    for key in keys:
        value = record.get(key)
        if isinstance(value, str | int | float) and not isinstance(value, bool) and value != "":
            return str(value)
    return None


def _from_json(
    text: str, offset: int, number: int, raw: str, process: str | None, pid: int | None, depth: int
) -> list[Line] | None:
    """Lines of a JSON-formatted record, or of a collector's envelope around a plain line; None if it is
    neither."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    body = _first(record, "message", "msg", "log", "event", "MESSAGE")
    if body is None:
        return None
    level = _first(record, "levelname", "level", "severity")
    level = level.upper() if level and level.isalpha() else None
    stamp = _first(record, "asctime", "timestamp", "time", "ts")
    source = _first(record, "filename", "name", "logger")
    process = _first(record, "processName", "process_name") or process
    number_text = _first(record, "process", "pid")
    pid = int(number_text) if number_text and number_text.isdecimal() and len(number_text) <= 10 else pid
    trace = _first(record, "exc_info", "exc_text", "exception", "traceback", "stack_info")
    lines: list[Line] = []
    for part in (body + ("\n" + trace if trace else "")).splitlines() or [""]:
        for line in _strip(ANSI.sub("", part), offset, number, raw, process, pid, depth + 1):
            lines.append(
                line._replace(
                    level=line.level or level,
                    timestamp=line.timestamp or stamp,
                    source=line.source or source,
                    head=line.head or "json",
                )
            )
    return lines
