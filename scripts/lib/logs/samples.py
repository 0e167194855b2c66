"""Periodic lines become samples of the two series, in any dialect; what lines do not say comes from the
configuration."""

from __future__ import annotations

import re
from collections.abc import Sequence

from scripts.lib.logs import periodic
from scripts.lib.logs.model import Line
from scripts.lib.logs.series import IntervalSeries, SpeculationSeries

_NAN = periodic.NAN


class Samples:
    """intervals and speculation of one boot; engine is the one whose lines were seen."""

    def __init__(self) -> None:
        self.intervals = IntervalSeries()
        self.speculation = SpeculationSeries()
        self.engine: str | None = None
        self._k: int | None = None
        self._fixed_k = True
        self._before_0_9: bool | None = None
        self._steps = float(periodic.DEFAULT_DECODE_LOG_INTERVAL)
        self._engine_labels: dict[str | None, str | None] = {}

    def configure(self, k: int | None, fixed_k: bool, version: str | None, steps: int | None) -> None:
        """k, whether every draft has k tokens, the release (vLLM 0.8.5 and 0.9 print different means
        alike) and the decode steps between SGLang's lines."""
        self._k, self._fixed_k = k, fixed_k
        release = re.match(r"0\.(\d{1,4})", version or "")
        self._before_0_9 = None if release is None else int(release[1]) < 9
        self._steps = float(steps or periodic.DEFAULT_DECODE_LOG_INTERVAL)

    def read(self, line: Line) -> bool:
        """Take the line if it is a periodic one."""
        message = line.message
        if "throughput" not in message and "metrics: " not in message and "acceptance" not in message:
            return "Prefill batch" in message and self._batch(line, message)
        if "Decode batch" in message or "Prefill batch" in message:
            return self._batch(line, message)
        if "Speculative metrics:" in message:
            return self._speculative_v0(line)
        if "SpecDecoding metrics:" in message or "Mean acceptance length:" in message:
            return self._speculative_v1(line)
        values = periodic.parse_stats(message)
        if values is None:
            return False
        self.statistics(*_place(line), periodic.engine_label(message), values)
        return True

    def _batch(self, line: Line, message: str) -> bool:
        start = max(message.find("Decode batch"), message.find("Prefill batch"))
        found = periodic.parse_sglang_batch(message[start:])
        if found is not None:
            self.batch(*_place(line), *found)
        return found is not None

    def _speculative_v0(self, line: Line) -> bool:
        found = periodic.parse_v0(line.message)
        if found is not None:
            self.speculation_v0(*_place(line), found)
        return found is not None

    def _speculative_v1(self, line: Line) -> bool:
        found = periodic.parse_v1(line.message)
        if found is not None:
            self.speculation_v1(*_place(line), found)
        return found is not None

    # -- what a line printed, wherever it was read: place (offset, line number, stamp, process), then its numbers --

    def statistics(
        self,
        offset: int,
        number: int,
        stamp: bytes,
        process: str | None,
        engine: str | None,
        values: tuple[float, ...],
    ) -> None:
        """vLLM's statistics: Interval's eight numbers."""
        self._engine_labels[process] = engine
        self.engine = self.engine or "vllm"
        label = self.intervals.label_id((process, engine, "stats"))
        self.intervals.add(offset, number, stamp, label, values)

    def batch(
        self,
        offset: int,
        number: int,
        stamp: bytes,
        process: str | None,
        kind: str,
        values: tuple[float, ...],
        length: float,
        rate: float,
    ) -> None:
        """SGLang's batch, `kind` decode or prefill: Interval's eight numbers, accept length and rate (NaN without)."""
        self.engine = "sglang"
        label = self.intervals.label_id((process, None, kind))
        self.intervals.add(offset, number, stamp, label, values)
        if length == length:
            sample = self._batch_sample(values[0], length, rate)
            label = self.speculation.label_id((process, None, "sglang"))
            self.speculation.add(offset, number, stamp, label, sample, ())

    def speculation_v0(
        self, offset: int, number: int, stamp: bytes, process: str | None, values: Sequence[float | None]
    ) -> None:
        """Dialects a and b: what periodic.parse_v0 gives."""
        dialect, sample = periodic.v0_sample(values, self._k)
        self._sample(offset, number, stamp, process, dialect, sample, ())

    def speculation_v1(
        self, offset: int, number: int, stamp: bytes, process: str | None, printed: periodic.Printed
    ) -> None:
        """Dialects c to e: what periodic.parse_v1 gives."""
        dialect, sample = periodic.v1_sample(printed, self._k, self._fixed_k, self._before_0_9)
        self._sample(offset, number, stamp, process, dialect, sample, printed.positions)

    def _sample(
        self,
        offset: int,
        number: int,
        stamp: bytes,
        process: str | None,
        dialect: str,
        values: tuple[float, ...],
        positions: Sequence[float],
    ) -> None:
        # The line names no engine: it follows the statistics line of the one it belongs to.
        label = self.speculation.label_id((process, self._engine_labels.get(process), dialect))
        self.speculation.add(offset, number, stamp, label, values, positions)

    def _batch_sample(self, running: float, length: float, rate: float) -> tuple[float, ...]:
        """SGLang prints no counts: steps since the last line times running requests stand in for drafts."""
        drafts = max(running, 1.0) * self._steps
        drafted = drafts * self._k if self._k else _NAN
        return (length - 1) * drafts, drafted, drafts, _NAN, length, rate, self._k or _NAN, 0.0


def _place(line: Line) -> tuple[int, int, bytes, str | None]:
    stamp = (line.timestamp or "").encode("ascii", "replace")
    return line.offset, line.number, stamp, line.process
