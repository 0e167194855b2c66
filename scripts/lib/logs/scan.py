"""Streams a log past the collector. Only lines that can matter are looked at one by one; the rest is skipped
in C.

A line that a rule can read opens with one of the rules' starts, so a line without any is skipped; while a
traceback is unfinished every line is handed over. In the first START_BYTES, where start-ups stand, openings
are looked for behind every blank, later only where a message can begin. Nothing depends on where the chunks
are cut.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate

from scripts.lib.logs.collect import PREFILTER, Collector
from scripts.lib.logs.incidents import FATAL_LITERALS
from scripts.lib.logs.normalise import MAX_LINE_BYTES, without_colours

START_BYTES = 2 << 20
_HOLD_BYTES = 1 << 20
_BLOCK_BYTES = 1 << 16


class Scanner:
    """feed() bytes in any portions, then close(); the collector holds the result."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self.size_bytes = 0
        self.lines = 0
        self._tail = bytearray()
        self._offset = 0
        self._number = 1
        self._skipping = False

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the log."""
        self.size_bytes += len(chunk)
        if self._skipping:
            chunk = self._skip(chunk)
        self._tail += chunk
        cut = max(self._tail.rfind(b"\n"), self._tail.rfind(b"\r")) + 1
        if cut:
            data = bytes(self._tail[:cut])
            del self._tail[:cut]
            self._scan(data)
        if len(self._tail) > _HOLD_BYTES:
            self._give_up_line()

    def close(self) -> None:
        """Take what stands behind the last line break, and count lines."""
        if self._tail:
            data = bytes(self._tail)
            self._tail.clear()
            self._scan(data)
            self.lines = self._number
        else:
            self.lines = self._number - 1

    def _give_up_line(self) -> None:
        """An endless line: read its head as a line, throw the rest away as it comes."""
        data = bytes(self._tail)
        self._tail.clear()
        self._scan(data)
        self._skipping = True

    def _skip(self, chunk: bytes) -> bytes:
        ends = [at for at in (chunk.find(b"\n"), chunk.find(b"\r")) if at >= 0]
        if not ends:
            self._offset += len(chunk)
            return b""
        self._skipping = False
        self._offset += min(ends)
        return chunk[min(ends) :]

    def _scan(self, data: bytes) -> None:
        """Whole lines; those that begin in the first START_BYTES are looked at with the more patient
        prefilter."""
        at = 0
        while at < len(data):
            room = START_BYTES - self._offset
            size = min(room, _BLOCK_BYTES) if room > 0 else _BLOCK_BYTES
            cut = data.find(b"\n", at + size - 1) + 1 or len(data)
            carriage = data.find(b"\r", at + size - 1, cut)
            if carriage >= 0 and carriage + 2 < cut:
                cut = carriage + 1
            self._scan_part(data[at:cut], room > 0)
            at = cut

    def _scan_part(self, data: bytes, patient: bool) -> None:
        clean = without_colours(data)
        if clean is None:
            self._scan_lines(data, None, patient)
        else:
            self._scan_lines(clean, _Starts(data, clean), patient)
        self._offset += len(data)
        self._number += data.count(b"\n")

    def _scan_lines(self, data: bytes, starts: _Starts | None, patient: bool) -> None:
        # The prefilter looks at the byte before an opening, so the first line needs one too.
        text = b"\n" + data
        collector, base, number = self.collector, self._offset - 1, self._number
        counted, at, end, next_hit = 1, 1, len(text), 0
        every_line = collector.open
        if not every_line:
            # Most blocks of a long log hold nothing but usual lines, and need no prefilter.
            at, lines = self._take_usual(text, at, number, starts)
            number, counted = number + lines, at
        if at >= end:
            return
        hits = _hits(text, patient)
        carriages = b"\r" in text
        while at < end:
            start = at
            if not every_line:
                next_hit = bisect_left(hits, at, next_hit)
                if next_hit == len(hits):
                    break
                start = text.rfind(b"\n", at - 1, hits[next_hit]) + 1 or at
                if carriages:
                    start = max(start, text.rfind(b"\r", at - 1, hits[next_hit]) + 1)
            number += text.count(b"\n", counted, start)
            counted = start
            if not every_line:
                at, lines = self._take_usual(text, start, number, starts)
                if lines:
                    number, counted = number + lines, at
                    continue
            stop = text.find(b"\n", start)
            stop = end if stop < 0 else stop
            if carriages:
                carriage = text.find(b"\r", start, stop)
                stop = stop if carriage < 0 else carriage
            if stop > start or every_line:
                offset = base + start if starts is None else self._offset + starts.original(start - 1)
                self._handle(text[start:stop], offset, number, patient)
                every_line = collector.open
            at = stop + 1

    def _take_usual(self, text: bytes, start: int, number: int, starts: _Starts | None) -> tuple[int, int]:
        """Read the lines from start on that have one of the forms long logs are made of, up to the first
        other one.

        Returns where that one starts and how many lines were read; all of them end in a newline or with the
        text.
        """
        read, base, lines = self.collector.usual.read, self._offset - 1, 0
        while True:
            offset = base + start if starts is None else self._offset + starts.original(start - 1)
            end = read(text, start, offset, number + lines)
            if end < 0:
                return start, lines
            start = end + 1
            lines += 1

    def _handle(self, raw: bytes, offset: int, number: int, patient: bool) -> None:
        if len(raw) > MAX_LINE_BYTES:
            raw = raw[:MAX_LINE_BYTES]
            if not self.collector.open and not _hits(b"\n" + raw, patient):
                return
        self.collector.handle(raw, offset, number)


class _Starts:
    """Where lines begin in data before its colour codes were taken out."""

    def __init__(self, data: bytes, clean: bytes) -> None:
        self._before = list(accumulate(map(len, data.splitlines(keepends=True)), initial=0))
        self._after = list(accumulate(map(len, clean.splitlines(keepends=True)), initial=0))

    def original(self, start: int) -> int:
        """Offset in data of the line that begins at start in the cleaned data."""
        return self._before[bisect_right(self._after, start) - 1]


def _hits(text: bytes, patient: bool) -> list[int]:
    """Positions inside lines that may matter, in order; text begins with a line break."""
    hits = PREFILTER.hits(text, patient)
    for literal in FATAL_LITERALS:
        at = text.find(literal)
        while at >= 0:
            hits.append(at)
            at = text.find(literal, at + 1)
    hits.sort()
    return hits
