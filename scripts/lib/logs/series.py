"""Compact sequences for lines that a long log holds by the hundred thousand.

Values live in typed arrays (about 120 bytes a sample) and become small frozen objects only when looked at.
"""

from __future__ import annotations

import math
import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_STAMP_WIDTH = 26
_OFFSET = struct.Struct("=Q")


class Interval(NamedTuple):
    """One periodic line: vLLM's 10 s statistics, or one SGLang decode or prefill batch line.

    kv_usage_percent and prefix_hit_percent are percentages; throughputs are tokens per second as printed
    (vLLM divides by the time since the last line that had data, so the first one after idle is diluted).
    """

    offset: int
    line: int
    timestamp: str | None
    process: str | None
    engine: str | None
    kind: str
    running: int | None
    waiting: int | None
    swapped: int | None
    kv_usage_percent: float | None
    prompt_tps: float | None
    generation_tps: float | None
    prefix_hit_percent: float | None
    preemptions: int | None


class SpecSample(NamedTuple):
    """One line of speculative-decoding metrics, in one definition.

    accepted, drafted: tokens of the interval (since start when cumulative); drafts: verification steps, exact
    for fixed k and otherwise recovered from the printed mean; mean_length = 1 + accepted/drafts, bonus token
    included; emitted: tokens put out (vLLM V0 only); printed_rate: the acceptance rate as a fraction, as
    printed (its definition changed between releases, so it is never used); per_position: acceptance of draft
    positions 0, 1, ...
    """

    offset: int
    line: int
    timestamp: str | None
    process: str | None
    engine: str | None
    dialect: str
    accepted: float | None
    drafted: float | None
    drafts: float | None
    emitted: float | None
    mean_length: float | None
    printed_rate: float | None
    k: int | None
    cumulative: bool
    per_position: tuple[float, ...]


def _optional(value: float) -> float | None:
    return None if math.isnan(value) else value


def _text(stamp: bytes) -> str | None:
    return stamp.rstrip(b"\0").decode("ascii", "replace") or None


def _optional_int(value: float) -> int | None:
    return None if math.isnan(value) else int(value)


class _Series:
    """Shared storage: packed rows of offset, timestamp, line number, label number and float columns."""

    row = struct.Struct(f"=Q{_STAMP_WIDTH}s10d")

    def __init__(self) -> None:
        self._rows = bytearray()
        self._pack = self.row.pack
        self._labels: dict[tuple[str | None, str | None, str], int] = {}
        self._label_list: list[tuple[str | None, str | None, str]] = []

    def label_id(self, labels: tuple[str | None, str | None, str]) -> int:
        """The number under which samples with these labels are stored."""
        label = self._labels.get(labels)
        if label is None:
            label = self._labels[labels] = len(self._label_list)
            self._label_list.append(labels)
        return label

    def __len__(self) -> int:
        return len(self._rows) // self.row.size

    def _unpacked(self, index: int) -> tuple:
        size = len(self)
        if not -size <= index < size:
            raise IndexError("sample index out of range")
        return self.row.unpack_from(self._rows, index % size * self.row.size)

    def _offset(self, index: int) -> int:
        return _OFFSET.unpack_from(self._rows, index * self.row.size)[0]

    def window(self, start: int | None = None, end: int | None = None) -> range:
        """Indices of the samples whose line starts in the byte window [start, end)."""
        indices = range(len(self))
        first = 0 if start is None else bisect_left(indices, start, key=self._offset)
        last = len(self) if end is None else bisect_left(indices, end, key=self._offset)
        return range(first, max(first, last))


class IntervalSeries(_Series, Sequence):
    """Periodic samples in log order; items are Interval."""

    def add(self, offset: int, line: int, stamp: bytes, label: int, values: tuple[float, ...]) -> None:
        """label: label_id of (process, engine, kind); values: the eight numbers of Interval in order, NaN
        for absent."""
        self._rows += self._pack(offset, stamp, line, label, *values)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        offset, stamp, line, label, running, waiting, swapped, *rates, preempted = self._unpacked(index)
        process, engine, kind = self._label_list[int(label)]
        usage, prompt, generation, hit = map(_optional, rates)
        return Interval(
            offset=offset,
            line=int(line),
            timestamp=_text(stamp),
            process=process,
            engine=engine,
            kind=kind,
            running=_optional_int(running),
            waiting=_optional_int(waiting),
            swapped=_optional_int(swapped),
            kv_usage_percent=usage,
            prompt_tps=prompt,
            generation_tps=generation,
            prefix_hit_percent=hit,
            preemptions=_optional_int(preempted),
        )

    def peaks(self) -> dict[str, float | None]:
        """Highest running, waiting, kv_usage_percent, generation_tps and prefix_hit_percent, None where never
        printed."""
        names = {
            "running": 4,
            "waiting": 5,
            "kv_usage_percent": 7,
            "generation_tps": 9,
            "prefix_hit_percent": 10,
        }
        highest = dict.fromkeys(names, -math.inf)
        for row in self.row.iter_unpack(self._rows):
            for name, column in names.items():
                if row[column] > highest[name]:
                    highest[name] = row[column]
        return {name: value if value > -math.inf else None for name, value in highest.items()}

    def between(self, start: int | None = None, end: int | None = None) -> Iterator[Interval]:
        """Samples whose line starts in the byte window [start, end)."""
        return (self[i] for i in self.window(start, end))


class SpeculationSeries(_Series, Sequence):
    """Speculative-decoding samples in log order; items are SpecSample."""

    row = struct.Struct(f"=Q{_STAMP_WIDTH}s10dQI")

    def __init__(self) -> None:
        super().__init__()
        self._positions = array("d")

    def add(
        self,
        offset: int,
        line: int,
        stamp: bytes,
        label: int,
        values: tuple[float, ...],
        per_position: Sequence[float],
    ) -> None:
        """label: label_id of (process, engine, dialect); values: accepted, drafted, drafts, emitted,
        mean_length, printed_rate, k, cumulative (1 or 0), NaN for absent."""
        width = len(per_position)
        self._rows += self._pack(offset, stamp, line, label, *values, len(self._positions), width)
        if width:
            self._positions.extend(per_position)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        offset, stamp, line, label, *numbers, cumulative, start, width = self._unpacked(index)
        process, engine, dialect = self._label_list[int(label)]
        accepted, drafted, drafts, emitted, mean, rate, k = map(_optional, numbers)
        return SpecSample(
            offset=offset,
            line=int(line),
            timestamp=_text(stamp),
            process=process,
            engine=engine,
            dialect=dialect,
            accepted=accepted,
            drafted=drafted,
            drafts=drafts,
            emitted=emitted,
            mean_length=mean,
            printed_rate=rate,
            k=None if k is None else int(k),
            cumulative=bool(cumulative),
            per_position=tuple(self._positions[start : start + width]),
        )

    def between(self, start: int | None = None, end: int | None = None) -> Iterator[SpecSample]:
        """Samples whose line starts in the byte window [start, end)."""
        return (self[i] for i in self.window(start, end))
