"""The feasibility rules, one small function each: None, or a verdict with the numbers that decide. Those about keys
of the speculative config and about runners are in feasibility_speculation.py.

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


def _given(resolved: Resolved, flag: str) -> int | None:
    return integer(resolved.flags.get(flag))


def _default(resolved: Resolved, flag: str) -> int | None:
    """What this machine is known to take when the flag is not given."""
    return integer(resolved.hardware.vllm_defaults.get(flag.replace("-", "_")))


def integer(value: object) -> int | None:
    """A flag's value as a whole number; None where it is none or not given."""
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError):
        return None


def token_budget(resolved: Resolved) -> int | None:
    """max-num-batched-tokens; a default of it is cut to max-num-seqs x max_model_len (vLLM arg_utils.py). None
    where neither the flag nor this machine's default is known."""
    if "max-num-batched-tokens" in resolved.flags:
        return _given(resolved, "max-num-batched-tokens")
    budget, seqs = _default(resolved, "max-num-batched-tokens"), scheduler_slots(resolved)
    if budget is None or seqs is None:
        return budget
    return min(budget, seqs * resolved.server.max_model_len)


def scheduler_slots(resolved: Resolved) -> int | None:
    """max-num-seqs; a default of it is cut to the max-num-batched-tokens given (vLLM arg_utils.py). None as in
    token_budget."""
    if "max-num-seqs" in resolved.flags:
        return _given(resolved, "max-num-seqs")
    seqs, budget = _default(resolved, "max-num-seqs"), _given(resolved, "max-num-batched-tokens")
    return seqs if seqs is None or budget is None else min(seqs, budget)


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
            f"{kind} needs a drafter; config/models/{resolved.model.name}.yaml names none under drafters "
            "(name the target itself where it carries the drafter)",
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
    budget, seqs = token_budget(resolved), scheduler_slots(resolved)
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


def budget_below_slots(resolved: Resolved) -> Verdict | None:
    budget, seqs = _given(resolved, "max-num-batched-tokens"), _given(resolved, "max-num-seqs")
    if budget is None or seqs is None or budget >= seqs:
        return None
    return Verdict(
        "infeasible",
        f"max-num-batched-tokens {budget} is below max-num-seqs {seqs}; raise the first or lower the last",
    )


def lookahead_fits(resolved: Resolved) -> Verdict | None:
    """The engine itself refuses a budget that only holds one request's drafting slots; between that and k + 1 it
    starts, but no step could ever verify k tokens, so the row's k would be a lie."""
    budget, k = token_budget(resolved), resolved.server.k
    if resolved.method.kind == BASELINE or budget is None or budget >= k + 1:
        return None
    return Verdict(
        "infeasible",
        f"max-num-batched-tokens {budget} does not hold the {k + 1} tokens (k + 1) of one request's step",
    )


def draft_model_engine(resolved: Resolved) -> Verdict | None:
    if resolved.method.kind != "draft_model":
        return None
    return Verdict(
        "infeasible", f"vLLM {resolved.engine.version} has no draft_model method (0.10 to 0.14 lack it)"
    )


def devices_given(resolved: Resolved) -> Verdict | None:
    """What a server sees and what is held and watched for it would differ."""
    given = [
        name for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES") if name in resolved.environment
    ]
    if not given or resolved.hardware.accelerator == "cpu":
        return None
    return Verdict(
        "infeasible",
        f"environment.{given[0]}: a server is given its GPUs when it starts, of those that CUDA_VISIBLE_DEVICES of your shell leaves; "
        "set it there",
    )


TEMPLATE_TOKENS = 64
"""Allowance for the chat template and the nonce in the cautious estimate of a prompt's length."""


def prompt_tokens_bounds(scenario: Scenario, output: int | None = None) -> tuple[int, int]:
    """Least and most tokens that the longest prompt (of those with max_tokens `output`) can plausibly have.

    input_tokens where the scenario gives it, since prompts are fitted to it. Else without a tokenizer: UTF-8 bytes / 8 and
    bytes / 2 + TEMPLATE_TOKENS, as English prose and code lie near 4 bytes a token, Japanese near 3.
    """
    if scenario.input_tokens is not None:
        return scenario.input_tokens, scenario.input_tokens
    longest = scenario.longest_by_output
    size = longest[output] if output is not None else max(longest.values())
    return size // 8, size // 2 + TEMPLATE_TOKENS


def scenario_fits(resolved: Resolved, scenario: Scenario, _: int) -> Verdict | None:
    verdicts = [_fits(resolved, scenario, output) for output in scenario.longest_by_output]
    found = [verdict for verdict in verdicts if verdict is not None]
    return min(found, key=lambda verdict: verdict.level, default=None)  # infeasible before warning


def _fits(resolved: Resolved, scenario: Scenario, output: int) -> Verdict | None:
    limit = resolved.server.max_model_len
    least, most = prompt_tokens_bounds(scenario, output)
    if least + output > limit or output >= limit:
        prompt = "input_tokens" if scenario.input_tokens else "a prompt of at least"
        tokens = "" if scenario.input_tokens else " tokens"
        return Verdict(
            "infeasible",
            f"{scenario.name}: max_tokens {output} + {prompt} {least}{tokens} is over max_model_len {limit}",
        )
    if most + output > limit:
        return Verdict(
            "warning",
            f"{scenario.name}: max_tokens {output} + a prompt of {least} to {most} tokens "
            f"(estimated from its bytes) may be over max_model_len {limit}",
        )
    return None


def random_prompts(resolved: Resolved, scenario: Scenario, _: int) -> Verdict | None:
    if scenario.random_seed is None or resolved.method.kind == BASELINE:
        return None
    return Verdict(
        "warning",
        f"{scenario.name}: drafters guess badly on random words; acceptance and speed-up of {resolved.server.method} "
        "say nothing about real prompts",
    )


def tokens_for_all(resolved: Resolved, _: Scenario, concurrency: int) -> Verdict | None:
    k, budget = resolved.server.k, token_budget(resolved)
    if budget is None or budget >= concurrency * (k + 1):
        return None
    return Verdict(
        "warning",
        f"scheduler-limited: max-num-batched-tokens {budget} holds {budget // (k + 1)} of {concurrency} "
        f"requests, as each needs k + 1 = {k + 1} tokens a step",
    )


FEWEST_SLOTS = 128
"""The smallest default of max-num-seqs on any machine (vLLM arg_utils.py: 128 on a CPU, 256 and 1024 on GPUs)."""


def slots(resolved: Resolved, _: Scenario, concurrency: int) -> Verdict | None:
    seqs = scheduler_slots(resolved)
    if seqs is None and concurrency > FEWEST_SLOTS:
        return Verdict(
            "warning",
            f"concurrency {concurrency} may be over max-num-seqs, which is not given and not known for "
            f"{resolved.hardware.name} (128 to 1024): requests over it queue",
        )
    if seqs is None or concurrency <= seqs:
        return None
    origin = "" if "max-num-seqs" in resolved.flags else " (vLLM's default, as the flag is not given)"
    return Verdict(
        "warning",
        f"concurrency {concurrency} is over max-num-seqs {seqs}{origin}: {concurrency - seqs} will queue",
    )
