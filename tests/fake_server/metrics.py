"""Counters of the engine, and /metrics under exactly the names of vLLM 0.27.1."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

FINISHED_REASONS = ("stop", "length", "abort", "error", "repetition")


@dataclass
class Ended:
    """What requests that came to their end had: SGLang counts nothing before."""

    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    generation_tokens: int = 0
    drafts: int = 0


@dataclass
class Counters:
    """Everything counted since the boot. Lists are per draft position."""

    prompt_tokens: int = 0
    generation_tokens: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    preemptions: int = 0
    prefills: int = 0
    decode_steps: int = 0
    drafts: int = 0
    drafted: int = 0
    accepted: int = 0
    accepted_per_position: list[int] = field(default_factory=list)
    finished: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FINISHED_REASONS, 0))
    created: float = field(default_factory=time.time)
    ended: Ended = field(default_factory=Ended)

    def draft(self, k: int, accepted: int) -> None:
        """Count one draft of k tokens."""
        self.drafts += 1
        self.drafted += k
        self.accepted += accepted
        for position in range(accepted):
            self.accepted_per_position[position] += 1


@dataclass(frozen=True)
class Gauges:
    """The state of the engine at the moment of asking."""

    running: int
    waiting: int
    cache_usage: float


@dataclass(frozen=True)
class CacheConfig:
    """What cache_config_info tells."""

    block_size: int
    kv_cache_tokens: int
    max_model_len: int
    prefix_caching: bool
    gpu_memory_utilization: float
    cache_dtype: str


def exposition(
    model: str, counters: Counters, gauges: Gauges, cache: CacheConfig, accepted_factor: float = 1.0
) -> str:
    """The Prometheus text. `accepted_factor` falsifies the accepted tokens. Without speculation (no
    positions) the spec_decode series do not exist, as in vLLM."""
    page = _Page(model, counters.created)
    if counters.accepted_per_position:
        _speculation(page, counters, accepted_factor)
    page.gauge(
        "num_requests_running", "Number of requests in model execution batches.", [("", gauges.running)]
    )
    page.gauge("num_requests_waiting", "Number of requests waiting to be processed.", [("", gauges.waiting)])
    page.gauge(
        "kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", [("", gauges.cache_usage)]
    )
    counter = page.counter
    counter(
        "prefix_cache_queries",
        "Prefix cache queries, in terms of number of queried tokens.",
        counters.prefix_queries,
    )
    counter(
        "prefix_cache_hits", "Prefix cache hits, in terms of number of cached tokens.", counters.prefix_hits
    )
    counter("num_preemptions", "Cumulative number of preemption from the engine.", counters.preemptions)
    counter("prompt_tokens", "Number of prefill tokens processed.", counters.prompt_tokens)
    counter("generation_tokens", "Number of generation tokens processed.", counters.generation_tokens)
    page.counters(
        "request_success",
        "Count of successfully processed requests.",
        [(f',finished_reason="{reason}"', count) for reason, count in counters.finished.items()],
    )
    page.cache_config(cache)
    return page.text()


def _speculation(page: _Page, counters: Counters, factor: float) -> None:
    page.counter("spec_decode_num_drafts", "Number of spec decoding drafts.", counters.drafts)
    page.counter("spec_decode_num_draft_tokens", "Number of draft tokens.", counters.drafted)
    page.counter("spec_decode_num_accepted_tokens", "Number of accepted tokens.", counters.accepted * factor)
    page.counters(
        "spec_decode_num_accepted_tokens_per_pos",
        "Accepted tokens per draft position.",
        [(f',position="{i}"', count * factor) for i, count in enumerate(counters.accepted_per_position)],
    )


class _Page:
    """Lines of the exposition format. vLLM sorts labels by name, so extra labels go where they sort."""

    def __init__(self, model: str, created: float) -> None:
        self._model, self._created, self._lines = model, created, []

    def gauge(self, name: str, text: str, samples: list[tuple[str, float]], kind: str = "gauge") -> None:
        self._lines += [f"# HELP vllm:{name} {text}", f"# TYPE vllm:{name} {kind}"]
        for extra, value in samples:
            self._lines.append(f"vllm:{name}{{{self._labels(extra)}}} {float(value)!r}")

    def counter(self, name: str, text: str, value: float) -> None:
        self.counters(name, text, [("", value)])

    def counters(self, name: str, text: str, samples: list[tuple[str, float]]) -> None:
        self.gauge(f"{name}_total", text, samples, "counter")
        self.gauge(f"{name}_created", text, [(extra, self._created) for extra, _ in samples])

    def cache_config(self, cache: CacheConfig) -> None:
        labels = {
            "_block_size_resolved": True,
            "block_size": cache.block_size,
            "cache_dtype": cache.cache_dtype,
            "enable_prefix_caching": cache.prefix_caching,
            "engine": 0,
            "gpu_memory_utilization": cache.gpu_memory_utilization,
            "kv_cache_max_concurrency": cache.kv_cache_tokens / cache.max_model_len,
            "kv_cache_memory_bytes": None,
            "kv_cache_size_tokens": cache.kv_cache_tokens,
            "num_cpu_blocks": None,
            "num_gpu_blocks": cache.kv_cache_tokens // cache.block_size,
            "num_gpu_blocks_override": None,
            "sliding_window": None,
        }
        listed = ",".join(f'{key}="{value}"' for key, value in labels.items())
        self._lines += [
            "# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig",
            "# TYPE vllm:cache_config_info gauge",
            f"vllm:cache_config_info{{{listed}}} 1.0",
        ]

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def _labels(self, extra: str) -> str:
        before, after = ("", extra) if extra.startswith(',position="') else (extra, "")
        return f'engine="0"{before},model_name="{self._model}"{after}'
