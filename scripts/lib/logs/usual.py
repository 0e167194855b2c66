"""The lines that fill long logs, straight from bytes and several times faster than the general way, with the same result (tests
hold both to it). A line in any other form, down to a thousands separator, takes the general way.

Each is a head (vLLM's, SGLang's, a JSON record around either or in place of them) and a body: vLLM's statistics and speculative
metrics of every release, SGLang's decode and prefill batches.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from scripts.lib.logs.normalise import (
    JSON_BODY,
    JSON_PROCESS,
    JSON_STAMP,
    JSON_TRACE,
    MAX_LINE_BYTES,
    OUTER_BYTES,
    first_text,
)
from scripts.lib.logs.periodic import NAN, Printed, prefix_hit
from scripts.lib.logs.samples import Samples

_N = r"\d{1,15}"
_B = r"\d{1,15}(?:\.\d{1,9})?"
_END = r"\r?(?=\n|\Z)"

_OPENING = rb"(?=([EASDP\d].{4}))"
"""What a usual message begins with."""

_VLLM_HEAD = re.compile(
    rb"(?:\((\w+) pid=\d{1,10}\) )?INFO ((?:\d{4}-)?\d\d-\d\d \d\d:\d\d:\d\d) \[?\w+\.py:\d+\] " + _OPENING
)
_SGLANG_HEAD = re.compile(rb"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?)((?: [A-Z_]+\d+)*)\] " + _OPENING)

_STATS = re.compile(
    (
        rf"(?:Engine (\d+): |(\d+ Engines) Aggregated: )?Avg prompt throughput: ({_B}) tokens/s, "
        rf"Avg generation throughput: ({_B}) tokens/s, Running: ({_N}) reqs, (?:Swapped: ({_N}) reqs, )?"
        rf"(?:Waiting|Pending): ({_N}) reqs, (?:Deferred: {_N} reqs, )?(?:Preemptions: ({_N}), )?"
        rf"[A-Z]+ KV cache usage: ({_B})%(?:, CPU KV cache usage: {_B}%\.)?(?:, Prefix cache hit rate: ({_B})%)?"
        rf"(?:, External prefix cache hit rate: {_B}%)?(?:, MM cache hit rate: {_B}%)?{_END}"
    ).encode()
)
_V1 = re.compile(
    (
        rf"SpecDecoding metrics: (?:Draft acceptance rate: ({_B})%, )?(?:Mean acceptance length: ({_B}), )?"
        rf"(Accepted throughput: {_B} tokens/s, Drafted throughput: {_B} tokens/s, )?"
        rf"Accepted: ({_N}) tokens, Drafted: ({_N}) tokens"
        rf"(?:, Per-position acceptance rate: ({_B}(?:, {_B})*))?(?:, Avg Draft acceptance rate: ({_B})%)?{_END}"
    ).encode()
)
_V0 = re.compile(
    (
        rf"Speculative metrics: Draft acceptance rate: ({_B})"
        rf"(?:, System efficiency: ({_B}), Number of speculative tokens: ({_N}))?"
        rf", Number of accepted tokens: ({_N}), Number of draft tokens: ({_N})"
        rf"(?:, Number of emitted tokens: ({_N}))?[., ]{{0,2}}{_END}"
    ).encode()
)
# SGLang puts more keys between those that are read: none of them may be one that is read.
_MORE = r"(?:, (?!accept |token usage|full token usage|#queue-req|#running-req)[#\w][\w -]*: [\w.]+%?)*?"
_USAGE = rf"{_MORE}(?:, (?:full )?token usage: ({_B}))"
_BATCH = r"(?:\.| \[\d+\],|,)"
_DECODE = re.compile(
    (
        rf"Decode batch{_BATCH} #running-req: ({_N}){_USAGE}{_MORE}"
        rf"(?:, accept len: ({_B})(?:, accept rate: ({_B}))?)?{_MORE}, gen throughput \(token/s\): ({_B}){_MORE}"
        rf", #queue-req: ({_N}){_MORE}(?:, )?{_END}"
    ).encode()
)
_PREFILL = re.compile(
    (
        rf"Prefill batch{_BATCH} #new-seq: {_N}, #new-token: ({_N}), #cached-token: ({_N}){_USAGE}{_MORE}"
        rf", #running-req: ({_N}){_MORE}, #queue-req: ({_N}){_MORE}"
        rf"(?:, input throughput \(token/s\): ({_B}))?{_MORE}(?:, )?{_END}"
    ).encode()
)

Found = re.Match[bytes]
Groups = tuple[bytes | None, ...]


class UsualReader:
    """Gives the usual lines of one boot to its samples."""

    def __init__(self, samples: Samples) -> None:
        self._samples = samples
        self._names: dict[bytes | None, str | None] = {None: None, b"": None}
        self._readers: dict[bytes, tuple[re.Pattern[bytes], Callable[..., None]]] = {
            b"Engin": (_STATS, self._stats),
            b"Avg p": (_STATS, self._stats),
            b"Decod": (_DECODE, self._decode),
            b"Prefi": (_PREFILL, self._prefill),
            b"SpecD": (_V1, self._v1),
            b"Specu": (_V0, self._v0),
        }

    def read(self, text: bytes, start: int, offset: int, number: int) -> int:
        """Take the line of text at start if it is usual; `offset` and `number` are its place in the log.

        Returns where it ends, its line feed excluded, or -1 for a line that was not taken.
        """
        first = text[start : start + 1]
        if first == b"{":
            return self._record(text, start, offset, number)
        head = (_SGLANG_HEAD if first == b"[" else _VLLM_HEAD).match(text, start)
        if head is None and first != b"(" and first != b"I":
            outer = OUTER_BYTES.match(text, start)
            if outer is not None and outer.end() > start:
                head = _head(text, outer.end())
        return -1 if head is None else self._headed(text, head, offset, number, None)

    def _headed(self, text: bytes, head: Found, offset: int, number: int, process: str | None) -> int:
        """A line with a head; `process` is whose line it is if the head does not tell."""
        name, stamp, opening = head.groups()
        if head.re is _SGLANG_HEAD:
            name, stamp = stamp, name
        return self._body(text, head.end(), opening, offset, number, self._name(name) or process, stamp)

    def _name(self, name: bytes | None) -> str | None:
        try:
            return self._names[name]
        except KeyError:
            self._names[name] = text = name.decode().strip()
            return text

    def _record(self, text: bytes, start: int, offset: int, number: int) -> int:
        """A JSON record whose message, or the line in its message, is usual."""
        end = text.find(b"\n", start)
        end = len(text) if end < 0 else end
        if end - start > MAX_LINE_BYTES or text.find(b"\r", start, end - 1) >= 0:
            return -1
        try:
            record = json.loads(text[start:end].decode())
            body = first_text(record, JSON_BODY)
            inner = (body or "").removesuffix("\n").encode()
        except (ValueError, RecursionError, AttributeError):
            return -1
        if b"\n" in inner or first_text(record, JSON_TRACE):
            return -1
        process = first_text(record, JSON_PROCESS)
        if inner[:1] in (b"(", b"[", b"I"):
            head = _head(inner, 0)
            taken = -1 if head is None else self._headed(inner, head, offset, number, process)
        else:
            stamp = (first_text(record, JSON_STAMP) or "").encode("ascii", "replace")
            taken = self._body(inner, 0, inner[:5], offset, number, process, stamp)
        return taken if taken < 0 else end

    def _body(
        self,
        text: bytes,
        start: int,
        opening: bytes,
        offset: int,
        number: int,
        process: str | None,
        stamp: bytes,
    ) -> int:
        """A message that begins with `opening`, its first five bytes."""
        reader = self._readers.get(opening)
        if reader is None:
            if not opening[:1].isdigit():
                return -1
            reader = self._readers[b"Engin"]  # 2 Engines Aggregated
        found = reader[0].match(text, start)
        if found is None:
            return -1
        reader[1](found.groups(), offset, number, process, stamp)
        return found.end()

    def _stats(self, found: Groups, offset: int, number: int, process: str | None, stamp: bytes) -> None:
        engine, engines, prompt, generation, running, swapped, waiting, preempted, usage, hit = found
        values = (
            float(running),
            float(waiting),
            _optional(swapped),
            float(usage),
            float(prompt),
            float(generation),
            _optional(hit),
            _optional(preempted),
        )
        self._samples.statistics(offset, number, stamp, process, self._name(engine or engines), values)

    def _v1(self, found: Groups, offset: int, number: int, process: str | None, stamp: bytes) -> None:
        rate, mean, throughput, accepted, drafted, by_position, average = found
        positions = list(map(float, by_position.split(b", "))) if by_position else []
        printed = Printed(
            float(accepted),
            float(drafted),
            None if mean is None else float(mean),
            _optional(rate or average) / 100,
            positions,
            throughput is not None or average is not None,
        )
        self._samples.speculation_v1(offset, number, stamp, process, printed)

    def _v0(self, found: Groups, offset: int, number: int, process: str | None, stamp: bytes) -> None:
        values = [text and float(text) for text in found]
        self._samples.speculation_v0(offset, number, stamp, process, values)

    def _decode(self, found: Groups, offset: int, number: int, process: str | None, stamp: bytes) -> None:
        running, usage, length, rate, generation, waiting = found
        values = (float(running), float(waiting), NAN, float(usage) * 100, NAN, float(generation), NAN, NAN)
        self._samples.batch(
            offset, number, stamp, process, "decode", values, _optional(length), _optional(rate)
        )

    def _prefill(self, found: Groups, offset: int, number: int, process: str | None, stamp: bytes) -> None:
        new, cached, usage, running, waiting, prompt = found
        hit = prefix_hit(float(new), float(cached))
        values = (float(running), float(waiting), NAN, float(usage) * 100, _optional(prompt), NAN, hit, NAN)
        self._samples.batch(offset, number, stamp, process, "prefill", values, NAN, NAN)


def _head(text: bytes, start: int) -> Found | None:
    return (_SGLANG_HEAD if text.startswith(b"[", start) else _VLLM_HEAD).match(text, start)


def _optional(text: bytes | None) -> float:
    return NAN if text is None else float(text)
