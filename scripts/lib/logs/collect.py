"""Turns lines into observations: one object holds everything a boot has printed so far."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from scripts.lib.logs import (
    config_sglang,
    config_vllm,
    periodic,
    rules_sglang,
    rules_vllm,
    rules_vllm_backends,
)
from scripts.lib.logs.fields import parse_fields, plain
from scripts.lib.logs.incidents import FATAL_STARTS
from scripts.lib.logs.marks import MARK_STARTS, Marks, marks_anywhere, marks_at_start, phase_of_bar
from scripts.lib.logs.model import Line, MemoryStep, Notice, Observation
from scripts.lib.logs.normalise import decode, normalise
from scripts.lib.logs.registry import FACTS
from scripts.lib.logs.rules import Rule, by_first_character, prefilter
from scripts.lib.logs.samples import Samples
from scripts.lib.logs.tracebacks import TracebackCollector
from scripts.lib.logs.usual import UsualReader

_MAX_OBSERVATIONS = 2048
_MAX_NOTICES = 5000
_MAX_RAW = 4000

_PERIODIC_FIRSTS = frozenset("EASMDP0123456789")
_PERIODIC_STARTS = (
    "Engine ",
    "Avg prompt throughput",
    "Avg generation throughput",
    "SpecDecoding metrics",
    "Speculative metrics",
    "Mean acceptance length",
    "Decode batch",
    "Prefill batch",
    "Engines Aggregated",
)
_ALL_RULES: tuple[Rule, ...] = rules_vllm.RULES + rules_vllm_backends.RULES + rules_sglang.RULES

PREFILTER = prefilter(
    [start for rule in _ALL_RULES for start in rule.starts] + [*MARK_STARTS, *_PERIODIC_STARTS, *FATAL_STARTS]
)
_ANYWHERE = tuple(rule for rule in _ALL_RULES if rule.anywhere)
_BY_FIRST = by_first_character(rule for rule in _ALL_RULES if not rule.anywhere)
_ANY_START = re.compile("|".join(re.escape(start) for rule in _ALL_RULES for start in rule.starts))
_ANYWHERE_START = re.compile("|".join(re.escape(start) for rule in _ANYWHERE for start in rule.starts))
_BAR_ENDS = (b"it/s]", b"s/it]")


class Collector:
    """State of one boot. `handle` takes physical lines, the `put`-like methods are for the reading rules."""

    def __init__(self) -> None:
        self.boots = 1
        self._reset()

    def _reset(self) -> None:
        self._engine: str | None = None
        self.version: str | None = None
        self.generation: str | None = None
        self.observations: dict[str, list[Observation]] = defaultdict(list)
        self.samples = Samples()
        self.usual = UsualReader(self.samples)
        self.notices: list[Notice] = []
        self.memory_steps: list[MemoryStep] = []
        self.config: dict[str, str] = {}
        self.config_line: Line | None = None
        self.args: dict[str, str] = {}
        self.args_line: Line | None = None
        self.tracebacks = TracebackCollector()
        self.phase: str | None = None
        self.ready_offset: int | None = None
        self.shutdown_offset: int | None = None
        self._drafting: set[tuple] = set()
        self._pools: set[tuple] = set()
        self._weights: set[tuple] = set()
        self._seen_notices: set[tuple[str, str]] = set()

    # -- entry -----------------------------------------------------------------------------------------------

    @property
    def engine(self) -> str | None:
        """vllm or sglang, as soon as a line tells."""
        return self._engine or self.samples.engine

    @property
    def open(self) -> bool:
        """Whether every next line is wanted."""
        return self.tracebacks.open

    def handle(self, raw: bytes, offset: int, number: int) -> None:
        """One physical line, colour codes already gone or not."""
        if raw.endswith(_BAR_ENDS) and not self.open and b".py:" not in raw and b"[20" not in raw:
            # A progress bar redraws itself hundreds of times and says no more than the phase.
            phase = phase_of_bar(raw)
            if phase is not None and self.ready_offset is None:
                self.phase = phase
            return
        for line in normalise(decode(raw), offset, number):
            self._line(line)

    def _line(self, line: Line) -> None:
        message = line.message
        if not message or message.isspace():
            if self.tracebacks.open:
                self.tracebacks.feed(line)
            return
        first = message[0]
        if line.head is not None and first in _PERIODIC_FIRSTS and self.samples.read(line):
            return
        if self.tracebacks.feed(line):
            return
        if line.head is None:
            self._headless(line)
            return
        for rule in _BY_FIRST.get(first, ()):
            found = rule.pattern.match(message)
            if found is not None:
                self._apply(rule, line, found)
        if _ANYWHERE_START.search(message):
            self._search(_ANYWHERE, line)
        self._take_marks(line, marks_at_start(message))

    def _headless(self, line: Line) -> None:
        """A line whose head was not recognised: look for every form anywhere in it."""
        if self.samples.read(line):
            return
        if _ANY_START.search(line.message):
            self._search(_ALL_RULES, line)
        self._take_marks(line, marks_anywhere(line.message))

    def _search(self, rules: tuple[Rule, ...], line: Line) -> None:
        for rule in rules:
            if any(start in line.message for start in rule.starts):
                found = rule.pattern.search(line.message)
                if found is not None:
                    self._apply(rule, line, found)

    def _apply(self, rule: Rule, line: Line, found: re.Match[str]) -> None:
        if rule.handler is not None:
            rule.handler(self, line, found)
        else:
            self.put_groups(found, line, rule.dialect)

    def _take_marks(self, line: Line, marks: Marks | None) -> None:
        if marks is None:
            return
        if marks.phase is not None and self.ready_offset is None:
            self.phase = marks.phase
        for notice, found in marks.notices:
            self._notice(notice, line, found)
        if marks.stops and self.shutdown_offset is None:
            self.shutdown_offset = line.offset

    # -- what rules call -------------------------------------------------------------------------------------

    def put_groups(self, found: re.Match[str], line: Line, dialect: str) -> None:
        """Record every named group of a match that is a fact."""
        for name, text in found.groupdict().items():
            if text is not None and name in FACTS:
                self.put(name, FACTS[name].convert(text), line, dialect)

    def put(self, name: str, value: Any, line: Line, dialect: str) -> None:
        """Record one value of one line."""
        kept = self.observations[name]
        if len(kept) < _MAX_OBSERVATIONS:
            spec = FACTS.get(name)
            kept.append(
                Observation(
                    value,
                    spec.unit if spec else None,
                    line.raw.rstrip()[:_MAX_RAW],
                    line.number,
                    line.offset,
                    line.process,
                    line.pid,
                    dialect,
                    line.repeated,
                )
            )
        if self._engine is None and dialect.startswith("vllm"):
            self._engine = "vllm"

    def has(self, name: str) -> bool:
        """Whether the fact was observed."""
        return bool(self.observations.get(name))

    def first(self, name: str) -> Observation:
        """The first observation of a fact. Raises IndexError if there is none."""
        return self.observations[name][0]

    def set_engine(self, engine: str, version: str | None) -> None:
        """Name the engine; a known version is kept."""
        self._engine = engine
        self.version = self.version or version
        self._configure_samples()

    def set_generation(self, generation: str | None) -> None:
        """vLLM's engine generation, V0 or V1."""
        self.generation = generation

    def set_config(self, dump: str, line: Line) -> None:
        """Keep the first config dump (`key=value, ...`): later ones repeat it or are crash dumps."""
        if self.config_line is None:
            self.config, self.config_line = parse_fields(dump), line
            self._configure_samples()

    def set_args(self, dump: str, line: Line) -> None:
        """Keep the command line's arguments."""
        if self.args_line is None:
            self.args, self.args_line = parse_fields(dump), line
            self._configure_samples()

    def _configure_samples(self) -> None:
        if self._engine == "sglang":
            facts = config_sglang.facts_from_config(self.config)
        else:
            facts = config_vllm.speculation_from_config(self.config) or config_vllm.facts_from_args(self.args)
        k, method = facts.get("num_speculative_tokens"), facts.get("speculative_method")
        variable = method in periodic.VARIABLE_K_METHODS or "per_batch_size" in str(self.args)
        fixed = not variable or self._engine == "sglang"
        steps = facts.get("decode_log_interval")
        self.samples.configure(
            k if isinstance(k, int) and k > 0 else None,
            fixed,
            self.version,
            steps if isinstance(steps, int) else None,
        )

    def set_ready(self, line: Line) -> None:
        """The server announced that it is up."""
        if self.ready_offset is None:
            self.ready_offset, self.phase = line.offset, "ready"

    def banner(self, line: Line) -> None:
        """A start-up banner: a second one after the first boot had served or failed begins another boot."""
        failed = any(incident.kind != "line" for incident in self.tracebacks.incidents)
        ended = self.ready_offset is not None or self.shutdown_offset is not None or failed
        known = self.args_line or self.config_line
        if ended and known is not None and (line.pid is None or line.pid != known.pid):
            boots = self.boots + 1
            self._reset()
            self.boots = boots

    def begin_drafter(self, line: Line) -> None:
        """From here on this process loads the drafter."""
        self._drafting.add((line.process, line.pid))

    def in_drafter(self, line: Line) -> bool:
        """Whether this process has begun to load the drafter."""
        return (line.process, line.pid) in self._drafting

    def pool_seen(self, line: Line) -> bool:
        """Whether this rank already printed a KV pool; remembers that it has now."""
        return self._seen_before(self._pools, line)

    def weights_seen(self, line: Line) -> bool:
        """Whether this rank already loaded weights; remembers that it has now."""
        return self._seen_before(self._weights, line)

    def _seen_before(self, seen: set[tuple], line: Line) -> bool:
        key = (line.process, line.pid)
        before = key in seen
        seen.add(key)
        return before

    def memory_step(self, line: Line, step: str, avail_gib: float) -> None:
        """Record free device memory at a start-up step."""
        if len(self.memory_steps) < _MAX_OBSERVATIONS:
            self.memory_steps.append(MemoryStep(line.offset, line.number, line.process, step, avail_gib))

    def _notice(self, notice, line: Line, found: re.Match[str]) -> None:
        text = line.message.strip()[:_MAX_RAW]
        if (not notice.repeats and (notice.id, text) in self._seen_notices) or len(
            self.notices
        ) >= _MAX_NOTICES:
            return
        self._seen_notices.add((notice.id, text))
        values = {name: _value(value) for name, value in found.groupdict().items() if value is not None}
        self.notices.append(
            Notice(notice.id, text, line.offset, line.number, line.process, notice.advice, values)
        )


def _value(text: str) -> Any:
    value = plain(text.replace(",", "") if text[:1].isdigit() or text[:1] == "-" else text)
    return text if value is None else value
