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
        self._usual_labels: dict[tuple, tuple] = {}
        self._names: dict[bytes | None, str | None] = {}

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
        label = self._engine_labels[line.process] = periodic.engine_label(message)
        self.engine = self.engine or "vllm"
        self._interval(line, label, "stats", values)
        return True

    def _batch(self, line: Line, message: str) -> bool:
        start = max(message.find("Decode batch"), message.find("Prefill batch"))
        batch = periodic.parse_sglang_batch(message[start:])
        if batch is None:
            return False
        kind, values, length, rate = batch
        self.engine = "sglang"
        self._interval(line, None, kind, values)
        if length == length:
            self._sample(line, "sglang", self._batch_sample(values[0], length, rate), ())
        return True

    def _speculative_v0(self, line: Line) -> bool:
        parsed = periodic.parse_v0(line.message, self._k)
        if parsed is not None:
            self._sample(line, *parsed, ())
        return parsed is not None

    def _speculative_v1(self, line: Line) -> bool:
        parsed = periodic.parse_v1(line.message, self._k, self._fixed_k, self._before_0_9)
        if parsed is not None:
            self._sample(line, *parsed)
        return parsed is not None

    def _interval(self, line: Line, engine: str | None, kind: str, values: tuple[float, ...]) -> None:
        label = self.intervals.label_id((line.process, engine, kind))
        self.intervals.add(line.offset, line.number, _stamp(line), label, values)

    def _sample(
        self, line: Line, dialect: str, values: tuple[float, ...], positions: Sequence[float]
    ) -> None:
        # The line names no engine: it follows the statistics line of the one it belongs to.
        label = self.speculation.label_id((line.process, self._engine_labels.get(line.process), dialect))
        self.speculation.add(line.offset, line.number, _stamp(line), label, values, positions)

    def _batch_sample(self, running: float, length: float, rate: float) -> tuple[float, ...]:
        """SGLang prints no counts: steps since the last line times running requests stand in for drafts."""
        drafts = max(running, 1.0) * self._steps
        drafted = drafts * self._k if self._k else _NAN
        return (length - 1) * drafts, drafted, drafts, _NAN, length, rate, self._k or _NAN, 0.0

    # -- the usual forms, straight from bytes and several times faster than `read`, with the same result -----

    def take_usual(self, found: re.Match[bytes], offset: int, number: int) -> None:
        """A line that periodic.USUAL matched."""
        groups = found.groups()
        process, stamp, engine, prompt = groups[:4]
        if prompt is None:
            name = self._names.get(process)
            if name is None and process is not None:
                name = self._names[process] = process.decode()
            values, positions = periodic.usual_speculation(groups, self._fixed_k)
            label = self.speculation.label_id((name, self._engine_labels.get(name), "e"))
            self.speculation.add(offset, number, stamp, label, values, positions)
            return
        known = self._usual_labels.get((process, engine))
        if known is None:
            name, text = (None if part is None else part.decode() for part in (process, engine))
            known = self._usual_labels[process, engine] = (
                self.intervals.label_id((name, text, "stats")),
                name,
                text,
            )
            self.engine = self.engine or "vllm"
        label, name, text = known
        self._engine_labels[name] = text
        self.intervals.add(offset, number, stamp, label, periodic.usual_stats(groups))

    def take_usual_batch(self, found: re.Match[bytes], offset: int, number: int) -> None:
        """A line that periodic.USUAL_BATCH matched."""
        stamp, ranks, running, usage, length, rate, generation, waiting = found.groups()
        labels = self._usual_labels.get((ranks,))
        if labels is None:
            process = ranks.decode().strip() or None
            self.engine = "sglang"
            labels = self._usual_labels[ranks,] = (
                self.intervals.label_id((process, None, "decode")),
                self.speculation.label_id((process, None, "sglang")),
            )
        requests = float(running)
        values = (requests, float(waiting), _NAN, float(usage) * 100, _NAN, float(generation), _NAN, _NAN)
        self.intervals.add(offset, number, stamp, labels[0], values)
        if length is not None:
            sample = self._batch_sample(requests, float(length), float(rate))
            self.speculation.add(offset, number, stamp, labels[1], sample, ())


def _stamp(line: Line) -> bytes:
    return (line.timestamp or "").encode("ascii", "replace")
