"""Feasibility rules about keys of the speculative config, drafting kernels and model runners.

Sources as in feasibility_rules.py; what Model Runner V2 cannot do is the list of vLLM 0.27.1 (config/vllm.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from scripts.lib.feasibility_rules import Verdict
from scripts.lib.resolve import Resolved

_V2_ONLY = frozenset({"dspark"})
_V1_ONLY = frozenset({"ngram", "ngram_gpu", "suffix", "draft_model"})
_SYNCHRONOUS = frozenset({"ngram", "suffix"})
_RUNNER = "VLLM_USE_V2_MODEL_RUNNER"
_UNQUANTIZED_MOE = ("triton", "batched_triton", "flashinfer_trtllm", "flashinfer_cutlass", "aiter")
_CHOSEN_BY_ENGINE = ("auto", "humming")
"""Backends that leave an unquantised layer to the automatic choice."""


def _keys(resolved: Resolved) -> Mapping[str, Any]:
    return resolved.speculative or {}


def _forced_runner(resolved: Resolved) -> str | None:
    choice = str(resolved.environment.get(_RUNNER, "")).lower()
    return {"1": "V2", "true": "V2", "0": "V1", "false": "V1"}.get(choice)


def no_cpu_support(resolved: Resolved) -> Verdict | None:
    if resolved.hardware.accelerator != "cpu":
        return None
    kind = resolved.method.kind
    if kind == "dspark" or _forced_runner(resolved) == "V2":
        cause = "dspark" if kind == "dspark" else f"{_RUNNER} is set: it"
        return Verdict(
            "infeasible", f"{cause} needs Model Runner V2, which needs Triton: it does not start on a CPU"
        )
    if kind == "ngram_gpu":
        return Verdict("infeasible", "ngram_gpu pins memory for an accelerator: its worker stops on a CPU")
    if _keys(resolved).get("rejection_sample_method") == "synthetic":
        return Verdict(
            "infeasible", "synthetic acceptance does not work on a CPU: the engine dies at the first request"
        )
    return None


def runner(resolved: Resolved) -> Verdict | None:
    kind, forced = resolved.method.kind, _forced_runner(resolved)
    if forced == "V1" and kind in _V2_ONLY:
        return Verdict("infeasible", f"{kind} exists in Model Runner V2 only; remove {_RUNNER}=0")
    if forced == "V2" and kind in _V1_ONLY:
        return Verdict("infeasible", f"Model Runner V2 does not support {kind}; remove {_RUNNER}=1")
    if forced == "V2" and kind in ("eagle", "eagle3", "mtp") and _keys(resolved).get("parallel_drafting"):
        return Verdict(
            "infeasible", f"Model Runner V2 does not draft in parallel with {kind}; remove {_RUNNER}=1"
        )
    return None


def block_verification(resolved: Resolved) -> Verdict | None:
    if _keys(resolved).get("rejection_sample_method") != "block":
        return None
    older = resolved.method.kind in _V1_ONLY or resolved.hardware.accelerator == "cpu"
    if not older and _forced_runner(resolved) != "V1":
        return None
    return Verdict(
        "warning", "rejection_sample_method block is read by Model Runner V2 only: here it will be ignored"
    )


def async_scheduling(resolved: Resolved) -> Verdict | None:
    if not resolved.flags.get("async-scheduling") or resolved.method.kind not in _SYNCHRONOUS:
        return None
    return Verdict(
        "infeasible",
        f"async-scheduling is refused with {resolved.method.kind}; leave it out (it is then on where it can be)",
    )


def synthetic(resolved: Resolved) -> Verdict | None:
    keys, k = _keys(resolved), resolved.server.k
    length, rates = keys.get("synthetic_acceptance_length"), keys.get("synthetic_acceptance_rates")
    given = [name for name in ("length", "rates") if keys.get(f"synthetic_acceptance_{name}") is not None]
    if keys.get("rejection_sample_method") != "synthetic":
        if not given:
            return None
        return Verdict(
            "infeasible", f"synthetic_acceptance_{given[0]} needs rejection_sample_method synthetic beside it"
        )
    if len(given) != 1:
        return Verdict(
            "infeasible", "synthetic acceptance needs one of synthetic_acceptance_length and _rates, not both"
        )
    if isinstance(length, (int, float)) and not 1 <= length <= k + 1:
        return Verdict("infeasible", f"synthetic_acceptance_length {length} must lie in [1, {k + 1}] (k + 1)")
    if isinstance(rates, (list, tuple)) and len(rates) != k:
        return Verdict("infeasible", f"synthetic_acceptance_rates has {len(rates)} entries, k is {k}")
    return None


def drafter_ranks(resolved: Resolved) -> Verdict | None:
    keys, kind = _keys(resolved), resolved.method.kind
    if "tensor_parallel_size" in keys:
        return Verdict(
            "infeasible", "speculative_config.tensor_parallel_size is no key; use draft_tensor_parallel_size"
        )
    drafts, ranks = keys.get("draft_tensor_parallel_size"), resolved.flags.get("tensor-parallel-size", 1)
    legal = {str(ranks)} if kind == "draft_model" else {"1", str(ranks)}
    if drafts is None or str(drafts) in legal:
        return None
    return Verdict(
        "infeasible",
        f"draft_tensor_parallel_size {drafts} must be {' or '.join(sorted(legal))} for {kind} "
        f"(tensor-parallel-size is {ranks})",
    )


def head_moe_backend(resolved: Resolved) -> Verdict | None:
    """An MTP head's experts are not quantised; spec.md section 2, vLLM 0.27.1 fused_moe/oracle/unquantized.py."""
    own, inherited = _keys(resolved).get("moe_backend"), resolved.flags.get("moe-backend")
    backend = own or inherited
    if resolved.method.kind != "mtp" or backend in (None, *_UNQUANTIZED_MOE, *_CHOSEN_BY_ENGINE):
        return None
    if own is None and backend == "marlin":  # the command line then names another for the head
        return None
    choices = ", ".join(_UNQUANTIZED_MOE)
    if own is not None:
        return Verdict(
            "infeasible", f"speculative_config.moe_backend {own} runs no MTP head; use one of {choices}"
        )
    return Verdict(
        "warning",
        f"the MTP head inherits moe-backend {backend}, which refuses unquantised experts; if it does not start, "
        f"set speculative_config.moe_backend to one of {choices}",
    )


def lookup_window(resolved: Resolved) -> Verdict | None:
    shortest, longest = (_keys(resolved).get(f"prompt_lookup_{end}") for end in ("min", "max"))
    if not isinstance(shortest, int) or not isinstance(longest, int) or shortest <= longest:
        return None
    return Verdict("infeasible", f"prompt_lookup_min {shortest} is over prompt_lookup_max {longest}")


def drafter_length(resolved: Resolved) -> Verdict | None:
    drafter, target = _keys(resolved).get("max_model_len"), resolved.server.max_model_len
    if not isinstance(drafter, int) or drafter <= target:
        return None
    return Verdict("infeasible", f"speculative_config.max_model_len {drafter} is over the target's {target}")


_SCHEDULE = "num_speculative_tokens_per_batch_size"


def k_schedule(resolved: Resolved) -> Verdict | None:
    """vLLM 0.27.1, v1/spec_decode/dynamic/utils.py and config/vllm.py."""
    schedule, k = _keys(resolved).get(_SCHEDULE), resolved.server.k
    if schedule is None:
        return None
    wrong = _wrong_schedule(schedule)
    if wrong:
        return Verdict(
            "infeasible", f"{_SCHEDULE} {wrong}; write it like [[1, 2, 4], [3, 256, 1]]: first, last, k"
        )
    if str(resolved.flags.get("data-parallel-size", 1)) != "1":
        return Verdict("warning", f"{_SCHEDULE} is switched off with data-parallel-size above 1: k stays {k}")
    most = max(entry[2] for entry in schedule)
    if most > k:
        return Verdict(
            "warning", f"{_SCHEDULE} asks for k {most}, but no k is above num_speculative_tokens ({k})"
        )
    return None


def _wrong_schedule(schedule: object) -> str | None:
    """What the engine refuses about it, in words."""
    if not isinstance(schedule, (list, tuple)) or not schedule:
        return "is no list of ranges"
    for entry in schedule:
        if not isinstance(entry, (list, tuple)) or len(entry) != 3 or any(type(n) is not int for n in entry):
            return f"has an entry {entry!r} that is no [first, last, k] of whole numbers"
        if not 1 <= entry[0] <= entry[1] or entry[2] < 0:
            return f"has an entry {entry!r}: first must be at least 1, last not before it, k not below 0"
    ordered = sorted(schedule)
    if ordered[0][0] != 1:
        return "does not begin with 1 running request"
    if any(later[0] <= earlier[1] for earlier, later in pairwise(ordered)):
        return "has ranges that overlap"
    return None
