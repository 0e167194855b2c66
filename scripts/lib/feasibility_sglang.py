"""Feasibility rules about SGLang servers that the workflow starts.

Sources: python/sglang/srt/server_args.py and srt/arg_groups/speculative_hook.py of SGLang 0.5.15 and later; spec.md section 2.
"""

from __future__ import annotations

from scripts.lib.engines.sglang import ALGORITHMS, DEFAULT_SLOTS, DRAFTER_FLAGS, SLOTS_FLAG
from scripts.lib.feasibility_rules import Verdict, integer
from scripts.lib.resolve import Resolved
from scripts.lib.scenario import Scenario

_OWN_KEYS = {"method", "num_speculative_tokens"}


def method_known(resolved: Resolved) -> Verdict | None:
    kind = resolved.method.kind
    if resolved.speculative is None or kind in ALGORITHMS:
        return None
    return Verdict("infeasible", f"SGLang has no {kind}; it has {', '.join(ALGORITHMS)}")


def dspark_release(resolved: Resolved) -> Verdict | None:
    if resolved.method.kind != "dspark":
        return None
    return Verdict("infeasible", "SGLang 0.5.15 and earlier have no DSPARK")


def synthetic(resolved: Resolved) -> Verdict | None:
    keys = resolved.speculative or {}
    if keys.get("rejection_sample_method") != "synthetic":
        return None
    return Verdict("infeasible", "SGLang cannot make up acceptance (rejection_sample_method: synthetic)")


def keys_without_flag(resolved: Resolved) -> Verdict | None:
    lost = sorted((resolved.speculative or {}).keys() - _OWN_KEYS - DRAFTER_FLAGS.keys())
    if not lost:
        return None
    return Verdict(
        "warning",
        f"speculative_config: SGLang has no flag for {', '.join(lost)}, which {'are' if lost[1:] else 'is'} not passed; "
        "set what you want there under `flags`",
    )


def chain_length(resolved: Resolved) -> Verdict | None:
    """A chain of drafts (top-k 1) is as long as its steps: SGLang would change k silently."""
    steps = integer(resolved.flags.get("speculative-num-steps"))
    breadth = integer(resolved.flags.get("speculative-eagle-topk", 1))
    if steps is None or breadth != 1 or steps == resolved.server.k or resolved.speculative is None:
        return None
    return Verdict(
        "infeasible",
        f"speculative-num-steps {steps} with top-k 1 drafts {steps} tokens, but k is {resolved.server.k}; remove the flag",
    )


def slots(resolved: Resolved, _: Scenario, concurrency: int) -> Verdict | None:
    running = integer(resolved.flags.get(SLOTS_FLAG, DEFAULT_SLOTS))
    if running is None or concurrency <= running:
        return None
    origin = "" if SLOTS_FLAG in resolved.flags else " (what the workflow passes where no level sets it)"
    return Verdict(
        "warning",
        f"concurrency {concurrency} is over {SLOTS_FLAG} {running}{origin}: {concurrency - running} will queue",
    )
