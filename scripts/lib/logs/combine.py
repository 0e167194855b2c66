"""From observations of ranks and engines to one fact each, and a reason for every fact that is missing."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import Any

from scripts.lib.logs import config_sglang, config_vllm
from scripts.lib.logs.absence import NO_DRAFTER, missing_facts
from scripts.lib.logs.collect import Collector
from scripts.lib.logs.fields import integer, number
from scripts.lib.logs.model import Fact, Notice, Observation
from scripts.lib.logs.policies import by_process, combined, fact_of
from scripts.lib.logs.registry import FACTS

DEFAULT_BLOCK_TOKENS = 16
_TYPES = {integer: int, number: int | float, bool: bool, str: str}
# Hybrid caches: tokens / length differs from the printed concurrency by more than rounding and page
# granularity explain.
_HYBRID_TOLERANCE = 0.05
_MEMORY_FREED_GIB = 0.05


def combine(collector: Collector) -> tuple[dict[str, Fact], dict[str, str], list[Notice]]:
    """(facts, reasons for missing facts, notices: those of the log that still hold and those that follow)."""
    return _Combiner(collector).run()


class _Combiner:
    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self.seen = {name: list(found) for name, found in collector.observations.items() if found}
        self.facts: dict[str, Fact] = {}
        self.notices: list[Notice] = []

    def run(self) -> tuple[dict[str, Fact], dict[str, str], list[Notice]]:
        self._from_configuration()
        self._assign_drafter_lines()
        for name in FACTS:
            if self.seen.get(name) and name not in self.facts:
                self.facts[name] = combined(name, self.seen[name])
        self._max_model_len()
        self._compile_cache()
        self._kv_fallbacks()
        self._kv_meaning()
        self._scheduler()
        self._memory_freed()
        self._check_compile_sum()
        return self.facts, missing_facts(self.collector, self.facts), self.notices

    # -- configuration ---------------------------------------------------------------------------------------

    def _from_configuration(self) -> None:
        """The dump is what was resolved; arguments fill in what dumps leave out. Printed choices beat
        `auto`."""
        sglang = self.collector.engine == "sglang"
        reader = config_sglang.facts_from_config if sglang else config_vllm.facts_from_config
        line = self.collector.config_line
        if line is not None:
            dialect = "sglang server_args" if sglang else "vllm config dump"
            for name, value in reader(self.collector.config).items():
                if sglang and name in ("max_num_seqs", "chunked_prefill_tokens") and self.seen.get(name):
                    continue  # the capacity line states what the scheduler settled on
                self._state(name, value, line, dialect)
        line = self.collector.args_line
        if line is not None and not sglang:
            for name, value in config_vllm.facts_from_args(self.collector.args).items():
                if name not in self.facts and (name == "asked_max_model_len" or not self.seen.get(name)):
                    self._state(name, value, line, "vllm arguments")
        self._printed_choice("kv_cache_dtype")

    def _state(self, name: str, value: Any, line, dialect: str) -> None:
        if not isinstance(value, _TYPES[FACTS[name].convert]):
            return  # a cut or garbled dump
        self.facts[name] = Fact(
            value, FACTS[name].unit, _excerpt(line.raw, name), line.number, line.process, dialect
        )

    def _printed_choice(self, name: str) -> None:
        if self.seen.get(name):
            self.facts[name] = combined(name, self.seen[name])

    def _value(self, name: str) -> Any:
        fact = self.facts.get(name)
        return None if fact is None else fact.value

    # -- drafter ---------------------------------------------------------------------------------------------

    def _assign_drafter_lines(self) -> None:
        """Runners that do not announce the drafter print target and drafter lines alike: order tells them
        apart."""
        method = self._value("speculative_method")
        drafts = method is not None and method not in NO_DRAFTER
        dummy = self._value("load_format") == "dummy"
        for name, drafter_name in (
            ("weights_load_s", "drafter_load_s"),
            ("attention_backend", "drafter_attention_backend"),
            ("moe_backend", "drafter_moe_backend"),
            ("architecture", "drafter_architecture"),
        ):
            if not drafts or self.seen.get(drafter_name):
                continue
            for found in by_process(self.seen.get(name, [])).values():
                late = found[1:] if len(found) > 1 else found if dummy and name == "weights_load_s" else []
                if late and name != "weights_load_s":
                    late = late[:1]
                for observation in late:
                    self.seen.setdefault(drafter_name, []).append(observation)
                    self.seen[name].remove(observation)

        if drafts and not self.seen.get("drafter_weights_gib"):
            later = [
                item for group in by_process(self.seen.get("weights_gib", [])).values() for item in group[1:]
            ]
            if later:
                self.seen["drafter_weights_gib"] = later

    # -- single facts ----------------------------------------------------------------------------------------

    def _max_model_len(self) -> None:
        """The concurrency line names the length the scheduler really serves: auto-fit and drafters change
        it late."""
        served = self.facts.get("max_concurrency_length_tokens")
        if served is not None:
            asked = self._value("max_model_len")
            note = None if asked in (None, served.value) else f"the config dump said {asked}"
            self.facts["max_model_len"] = Fact(
                served.value, "tokens", served.raw, served.line, served.process, served.dialect, (), note
            )

    def _compile_cache(self) -> None:
        found = self.seen.get("compile_cache")
        if not found:
            return
        cold = [observation for observation in found if observation.value == "cold"]
        mixed = cold and len(cold) < len(found)
        note = "part of the graphs came from the cache" if mixed else None
        self.facts["compile_cache"] = fact_of(
            "compile_cache", (cold or found)[0], (cold or found)[0].value, found, note
        )

    def _kv_fallbacks(self) -> None:
        pool_tokens, pool_gib = self.seen.get("_pool_tokens"), self.seen.get("_pool_gib")
        if "kv_cache_tokens" not in self.facts and pool_tokens:
            self.facts["kv_cache_tokens"] = combined("kv_cache_tokens", pool_tokens)
        if pool_gib:
            self._sglang_kv_memory(pool_gib)
        if "kv_cache_tokens" not in self.facts and "num_gpu_blocks" in self.facts:
            self._kv_from_blocks()
        kind = self.seen.get("_pool_dtype")
        if kind and self._value("kv_cache_dtype") in (None, "auto"):
            note = "the arguments say auto" if self._value("kv_cache_dtype") else None
            self.facts["kv_cache_dtype"] = fact_of("kv_cache_dtype", kind[0], kind[0].value, kind, note)
        if self.collector.notices and any(n.id == "kv_blocks_forced" for n in self.collector.notices):
            self._note("kv_cache_tokens", "forced by num_gpu_blocks_override, not measured")

    def _sglang_kv_memory(self, pool_gib: list[Observation]) -> None:
        target = combined("kv_available_gib", pool_gib)
        drafter = self.facts.get("drafter_kv_gib")
        total = target.value + (drafter.value if drafter else 0.0)
        note = "K and V" + (", target and drafter pools" if drafter else "")
        self.facts["kv_available_gib"] = Fact(
            round(total, 2),
            "GiB",
            target.raw,
            target.line,
            target.process,
            target.dialect,
            target.observations,
            note,
        )

    def _kv_from_blocks(self) -> None:
        blocks = self.facts["num_gpu_blocks"]
        size = self._value("block_size_tokens")
        note = f"{blocks.value} blocks x {size or DEFAULT_BLOCK_TOKENS} tokens"
        if size is None:
            note += " (block size not printed: the default of 16 is assumed)"
        self.facts["kv_cache_tokens"] = Fact(
            blocks.value * (size or DEFAULT_BLOCK_TOKENS),
            "tokens",
            blocks.raw,
            blocks.line,
            blocks.process,
            blocks.dialect,
            blocks.observations,
            note,
        )

    def _note(self, name: str, note: str) -> None:
        fact = self.facts.get(name)
        if fact is not None:
            text = f"{fact.note}; {note}" if fact.note else note
            self.facts[name] = replace(fact, note=text)

    def _kv_meaning(self) -> None:
        tokens, memory = self._value("kv_cache_tokens"), self._value("kv_available_gib")
        requests, length = self._value("max_concurrency"), self._value("max_concurrency_length_tokens")
        page = self.seen.get("block_size_tokens")
        if tokens is not None and requests and length:
            off = abs(tokens / length - requests) / requests
            if off > _HYBRID_TOLERANCE:
                self._hybrid(self.facts["max_concurrency"], "tokens / length is not the printed concurrency")
        if page and "hybrid" not in self.facts:
            self._hybrid(
                combined("block_size_tokens", page), "the attention page was sized to the recurrent state"
            )
        if self._value("hybrid"):
            release = _minor(self.collector.version)
            meaning = "a concurrency figure in token units that depends on max_model_len"
            if release is not None and release < 21:
                meaning = "an underestimate; its meaning changed at vLLM 0.21"
            elif release is None:
                meaning += " (vLLM 0.21 on; an underestimate before)"
            self._note(
                "kv_cache_tokens", f"hybrid model: not per-token capacity but {meaning}; use max_concurrency"
            )
        elif tokens and memory is not None and memory > 0:
            source = self.facts["kv_available_gib"]
            self.facts["kv_bytes_per_token"] = Fact(
                round(memory * 2**30 / tokens),
                "B/token",
                source.raw,
                source.line,
                source.process,
                source.dialect,
            )
        if self.collector.engine == "sglang" and tokens and not self._value("hybrid"):
            self._sglang_concurrency(tokens)

    def _sglang_concurrency(self, tokens: int) -> None:
        """SGLang's pool is one of tokens, so what fits follows from it; with recurrent states it does not."""
        length = self.facts.get("max_model_len")
        if length is None:
            return
        source = self.facts["kv_cache_tokens"]
        fits = replace(
            source,
            value=round(tokens / length.value, 2),
            unit="requests",
            observations=(),
            note="kv_cache_tokens / max_model_len",
        )
        self.facts["max_concurrency"] = fits
        self.facts["max_concurrency_length_tokens"] = length

    def _hybrid(self, source: Fact, note: str) -> None:
        self.facts["hybrid"] = Fact(
            True, None, source.raw, source.line, source.process, source.dialect, (), note
        )

    def _scheduler(self) -> None:
        """What speculation took from the token budget; the warning is printed even when it took nothing."""
        if "max_num_batched_tokens" not in self.facts:
            ends = re.search(
                r"'compile_ranges_(?:endpoints|split_points)': \[(?:[\d, ]*, )?(\d+)\]",
                self.collector.config.get("compilation_config", ""),
            )
            if ends is not None and self.collector.config_line is not None:
                self._state(
                    "max_num_batched_tokens", int(ends[1]), self.collector.config_line, "vllm compile range"
                )
        asked = self._value("max_num_batched_tokens")
        notices = []
        for notice in self.collector.notices:
            if notice.id == "scheduled_tokens":
                if notice.values["scheduled_tokens"] == asked:
                    continue
                notice = replace(notice, values={**notice.values, "max_num_batched_tokens": asked})
            notices.append(notice)
        self.notices = notices

    # -- notices that follow ---------------------------------------------------------------------------------

    def _memory_freed(self) -> None:
        """Memory that came back after the KV pool was sized: the pool could have been larger."""
        by_process: dict[str | None, list] = defaultdict(list)
        for step in self.collector.memory_steps:
            by_process[step.process].append(step)
        for process, steps in by_process.items():
            pools = [i for i, step in enumerate(steps) if step.step == "Memory pool end"]
            if not pools:
                continue
            base = steps[pools[-1]]
            later = max(steps[pools[-1] + 1 :], key=lambda step: step.avail_gib, default=None)
            if later is not None and later.avail_gib - base.avail_gib > _MEMORY_FREED_GIB:
                gained = round(later.avail_gib - base.avail_gib, 2)
                self.notices.append(
                    Notice(
                        "memory_freed_after_pool",
                        f"{gained} GiB became free after the KV pool was sized ({base.avail_gib} GiB at "
                        f"'Memory pool end', {later.avail_gib} GiB at '{later.step}')",
                        later.offset,
                        later.line,
                        process,
                        "the KV pool was sized before memory was returned: raise the memory fraction and "
                        "compare kv_cache_tokens with the baseline",
                        {"gained_gib": gained},
                    )
                )

    def _check_compile_sum(self) -> None:
        total, parts = self._value("init_compile_s"), self._value("compile_s")
        if total is not None and parts is not None and abs(total - parts) > 0.1:
            self._note("compile_s", f"the engine itself sums {total} s of compilation")


def _minor(version: str | None) -> int | None:
    found = re.match(r"0\.(\d+)", version or "")
    return None if found is None else int(found[1])


def _excerpt(raw: str, name: str) -> str:
    """The part of a long dump that states the fact, or its beginning."""
    aliases = {
        "max_model_len": "max_seq_len",
        "num_speculative_tokens": "speculative_",
        "speculative_method": "speculative_",
        "drafter_model": "speculative_",
        "max_num_batched_tokens": "compile_ranges_",
    }
    at = raw.find(aliases.get(name, name) + "=")
    at = at if at >= 0 else raw.find(aliases.get(name, name))
    return raw[at : at + 160] if at >= 0 else raw[:160]
