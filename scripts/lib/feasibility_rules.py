"""The feasibility rules, one small function each: None, or a verdict with the numbers that decide.

Sources: logs.md 2.7 and the rows of its catalogue that can be computed before a start, spec.md section 2, and
the sources of vLLM 0.27.1 (config/vllm.py, config/speculative.py, engine/arg_utils.py). `feasibility` lists
the rules with the engine versions they hold for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from scripts.lib.cell import BASELINE
from scripts.lib.methods import METHOD_KINDS
from scripts.lib.resolve import Resolved
from scripts.lib.scenario import Scenario

Level = Literal["infeasible", "warning"]


@dataclass(frozen=True)
class Verdict:
    level: Level
    message: str


def _limit(resolved: Resolved, flag: str) -> int | None:
    """A scheduler limit as given, else this machine's known default; None where neither is known."""
    value = resolved.flags.get(flag, resolved.hardware.vllm_defaults.get(flag.replace("-", "_")))
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError):
        return None


def token_budget(resolved: Resolved) -> int | None:
    """max-num-batched-tokens; a default of it is cut to max-num-seqs x max_model_len (vLLM arg_utils.py)."""
    budget, seqs = _limit(resolved, "max-num-batched-tokens"), _limit(resolved, "max-num-seqs")
    if budget is None or seqs is None or "max-num-batched-tokens" in resolved.flags:
        return budget
    return min(budget, seqs * resolved.server.max_model_len)


def drafting_slots(resolved: Resolved) -> int:
    """Slots that drafting adds to each request: k - 1 for parallel drafting, and 1 for a draft model.

    Source: vLLM 0.27.1 SpeculativeConfig.max_num_new_slots_for_drafting; logs.md 2.7.
    """
    kind = METHOD_KINDS[resolved.method.kind]
    parallel = kind.parallel or bool((resolved.speculative or {}).get("parallel_drafting"))
    return (resolved.server.k - 1 if parallel else 0) + (1 if kind.draft_model else 0)


def k_of_baseline(resolved: Resolved) -> Verdict | None:
    k, name = resolved.server.k, resolved.method.name
    if resolved.method.kind == BASELINE and k != 0:
        return Verdict("infeasible", f"{name} does not speculate, so k {k} has no meaning; its k is 0")
    if resolved.method.kind != BASELINE and k < 1:
        return Verdict("infeasible", f"{name} needs k of at least 1, got {k}; the baseline is {BASELINE}")
    return None


def drafter(resolved: Resolved) -> Verdict | None:
    kind, speculative = resolved.method.kind, resolved.speculative or {}
    if METHOD_KINDS[kind].drafter and not speculative.get("model"):
        return Verdict(
            "infeasible",
            f"{kind} needs a drafter; config/models/{resolved.model.name}.yaml names none under drafters",
        )
    if not METHOD_KINDS[kind].drafter and speculative.get("model"):
        return Verdict(
            "infeasible", f"{kind} takes no drafter, but speculative_config.model is {speculative['model']}"
        )
    return None


def mtp_head(resolved: Resolved) -> Verdict | None:
    if resolved.method.kind == "mtp" and not resolved.model.has_mtp:
        return Verdict(
            "infeasible", f"{resolved.server.model} has no multi-token-prediction head (no `mtp` in its file)"
        )
    return None


def mtp_divisible(resolved: Resolved) -> Verdict | None:
    k, n_predict = resolved.server.k, resolved.model.mtp_n_predict
    if resolved.method.kind != "mtp" or n_predict is None or k <= n_predict or k % n_predict == 0:
        return None
    low = k // n_predict * n_predict
    return Verdict(
        "infeasible",
        f"k {k} is no multiple of n_predict {n_predict}; nearest legal k: {low} and {low + n_predict}",
    )


def model_context(resolved: Resolved) -> Verdict | None:
    asked, limit = resolved.server.max_model_len, resolved.model.context_length
    if limit is None or asked <= limit:
        return None
    message = f"max_model_len {asked} is over the {limit} tokens of context of {resolved.server.model}"
    allowed = resolved.environment.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN") == "1"
    return Verdict("warning" if allowed else "infeasible", message)


def stochastic_rounding(resolved: Resolved) -> Verdict | None:
    flags = resolved.flags
    if (
        not flags.get("enable-mamba-cache-stochastic-rounding")
        or flags.get("mamba-ssm-cache-dtype") == "float16"
    ):
        return None
    have = flags.get("mamba-ssm-cache-dtype", "not given")
    return Verdict(
        "infeasible",
        f"enable-mamba-cache-stochastic-rounding requires mamba-ssm-cache-dtype float16, which is {have}",
    )


def dspark_block(resolved: Resolved) -> Verdict | None:
    block = resolved.drafter.block_size if resolved.drafter else None
    if resolved.method.kind != "dspark" or block is None or resolved.server.k >= block:
        return None
    return Verdict(
        "warning",
        f"k {resolved.server.k} is below the drafter's block size {block}: "
        "newer releases refuse it, others may draft badly",
    )


def scheduled_tokens(resolved: Resolved) -> Verdict | None:
    slots = drafting_slots(resolved)
    budget, seqs = token_budget(resolved), _limit(resolved, "max-num-seqs")
    if slots == 0 or budget is None or seqs is None:
        return None
    left = budget - slots * seqs
    sum_text = f"max-num-batched-tokens {budget} - {slots} slots x max-num-seqs {seqs} = {left}"
    if left <= 0:
        return Verdict(
            "infeasible", f"no token can be scheduled: {sum_text}; raise the first or lower the last"
        )
    return Verdict(
        "warning", f"schedules fewer tokens a step than {BASELINE}: {sum_text}, {BASELINE} has {budget}"
    )


def lookahead_fits(resolved: Resolved) -> Verdict | None:
    budget, k = token_budget(resolved), resolved.server.k
    if resolved.method.kind == BASELINE or budget is None or budget >= k + 1:
        return None
    return Verdict(
        "infeasible",
        f"max-num-batched-tokens {budget} does not hold the {k + 1} tokens (k + 1) of one request's step",
    )


def synthetic_length(resolved: Resolved) -> Verdict | None:
    speculative, k = resolved.speculative or {}, resolved.server.k
    length = speculative.get("synthetic_acceptance_length")
    if not isinstance(length, (int, float)) or 1 <= length <= k + 1:
        return None
    return Verdict("infeasible", f"synthetic_acceptance_length {length} must lie in [1, {k + 1}] (k + 1)")


def draft_model_engine(resolved: Resolved) -> Verdict | None:
    if resolved.method.kind != "draft_model":
        return None
    return Verdict(
        "infeasible", f"vLLM {resolved.engine.version} has no draft_model method (0.10 to 0.14 lack it)"
    )


def no_cpu_support(resolved: Resolved) -> Verdict | None:
    if resolved.hardware.accelerator != "cpu":
        return None
    kind = resolved.method.kind
    if kind == "dspark":
        return Verdict(
            "infeasible", "dspark needs Model Runner V2, which needs Triton: it does not start on a CPU"
        )
    if kind == "ngram_gpu":
        return Verdict("infeasible", "ngram_gpu pins memory for an accelerator: its worker stops on a CPU")
    if (resolved.speculative or {}).get("rejection_sample_method") == "synthetic":
        return Verdict(
            "infeasible", "synthetic acceptance does not work on a CPU: the engine dies at the first request"
        )
    return None


def memory_utilization(resolved: Resolved) -> Verdict | None:
    hardware = resolved.hardware
    limit = hardware.max_gpu_memory_utilization
    given = resolved.flags.get("gpu-memory-utilization", hardware.vllm_defaults.get("gpu_memory_utilization"))
    try:
        asked = float(given)
    except (TypeError, ValueError):
        return None
    if limit is None or asked <= limit:
        return None
    origin = (
        "" if "gpu-memory-utilization" in resolved.flags else " (vLLM's default, as the flag is not given)"
    )
    shared = ", where CPU and GPU share the memory" if hardware.unified_memory else ""
    return Verdict(
        "warning",
        f"gpu-memory-utilization {asked:g}{origin} is over {limit:g}, "
        f"the most known to start on {hardware.name}{shared}",
    )


TEMPLATE_TOKENS = 64
"""Allowance for the chat template and the nonce in the cautious estimate of a prompt's length."""


def prompt_tokens_bounds(scenario: Scenario) -> tuple[int, int]:
    """Least and most tokens the longest prompt can plausibly have, without a tokenizer.

    UTF-8 bytes / 8 and bytes / 2 + TEMPLATE_TOKENS: English prose and code lie near 4 bytes a token, Japanese
    near 3.
    """
    size = max(len(prompt.text.encode()) for prompt in (*scenario.prompts, *scenario.warmup_prompts))
    return size // 8, size // 2 + TEMPLATE_TOKENS


def scenario_fits(resolved: Resolved, scenario: Scenario, _: int) -> Verdict | None:
    limit, output = resolved.server.max_model_len, scenario.max_tokens
    least, most = prompt_tokens_bounds(scenario)
    if least + output > limit or output >= limit:
        return Verdict(
            "infeasible",
            f"{scenario.name}: max_tokens {output} + a prompt of at least {least} tokens "
            f"is over max_model_len {limit}",
        )
    if most + output > limit:
        return Verdict(
            "warning",
            f"{scenario.name}: max_tokens {output} + a prompt of {least} to {most} tokens "
            f"(estimated from its bytes) may be over max_model_len {limit}",
        )
    return None


def tokens_for_all(resolved: Resolved, _: Scenario, concurrency: int) -> Verdict | None:
    k, budget = resolved.server.k, token_budget(resolved)
    if budget is None or budget >= concurrency * (k + 1):
        return None
    return Verdict(
        "warning",
        f"scheduler-limited: max-num-batched-tokens {budget} holds {budget // (k + 1)} of {concurrency} "
        f"requests, as each needs k + 1 = {k + 1} tokens a step",
    )


def slots(resolved: Resolved, _: Scenario, concurrency: int) -> Verdict | None:
    slots = _limit(resolved, "max-num-seqs")
    if slots is None or concurrency <= slots:
        return None
    return Verdict(
        "warning", f"concurrency {concurrency} is over max-num-seqs {slots}: {concurrency - slots} will queue"
    )
