"""/metrics under exactly the names of SGLang 0.5.15. Requests are counted when they end."""

from __future__ import annotations

from .metrics import CacheConfig, Counters, Gauges

_RANKS = 'engine_type="unified",model_name="{}",moe_ep_rank="0",pp_rank="0",tp_rank="0"'


def exposition(
    model: str, counters: Counters, gauges: Gauges, cache: CacheConfig, accepted_factor: float = 1.0
) -> str:
    """The Prometheus text. `accepted_factor` falsifies the tokens generated. The counter of verification steps appears with the
    first request that was drafted for."""
    ended = counters.ended
    lines: list[str] = []

    def sample(name: str, kind: str, value: float, labels: str) -> None:
        lines.extend([f"# HELP sglang:{name} {name}", f"# TYPE sglang:{name} {kind}"])
        lines.append(f"sglang:{name}{{{labels}}} {float(value)!r}")

    ranks = _RANKS.format(model)
    plain = f'engine_type="unified",model_name="{model}"'
    sample("max_total_num_tokens", "gauge", cache.kv_cache_tokens, ranks)
    sample("context_len", "gauge", cache.max_model_len, ranks)
    sample("num_running_reqs", "gauge", gauges.running, ranks)
    sample("num_queue_reqs", "gauge", gauges.waiting, ranks)
    sample("token_usage", "gauge", gauges.cache_usage, ranks)
    k = len(counters.accepted_per_position)
    lifetime = 1 + counters.accepted / counters.drafts if counters.drafts else 0.0
    # A gauge of the last interval, and here of all of them: a reader that took it for the window's would be wrong.
    sample("spec_accept_length", "gauge", lifetime, ranks)
    sample("spec_num_draft_tokens", "gauge", k + 1 if k else 0, ranks)
    if ended.requests:
        sample("prompt_tokens_total", "counter", ended.prompt_tokens, plain)
        sample("generation_tokens_total", "counter", ended.generation_tokens * accepted_factor, plain)
        sample("num_requests_total", "counter", ended.requests, plain)
        sample("cached_tokens_total", "counter", ended.cached_tokens, f'cache_source="device",{plain}')
    if ended.drafts:
        sample("spec_verify_calls_total", "counter", ended.drafts, plain)
    return "\n".join(lines) + "\n"
