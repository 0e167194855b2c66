"""SGLang's command line for a resolved server.

k is the number of drafted tokens, for every method and engine. SGLang counts the token that is verified for free as well in
most of its knobs, so that k 3 is `--speculative-num-draft-tokens 4`. Sources: python/sglang/srt/server_args.py and
srt/arg_groups/speculative_hook.py of SGLang 0.5.15 and later, spec.md section 2.
"""

from __future__ import annotations

from typing import Any

from scripts.lib.engines import words
from scripts.lib.resolve import Resolved

SLOTS_FLAG, DEFAULT_SLOTS = "max-running-requests", 48
"""SGLang cuts its slots to 48 under speculation, and only then, unless the flag is given: so all methods get it."""

ALGORITHMS = {
    "mtp": "EAGLE",
    "eagle": "EAGLE",
    "eagle3": "EAGLE3",
    "draft_model": "STANDALONE",
    "dspark": "DSPARK",
    "dflash": "DFLASH",
    "ngram": "NGRAM",
}
"""Our methods as `--speculative-algorithm`. Methods that are not here SGLang does not have."""

DRAFTER_FLAGS = {
    "model": "speculative-draft-model-path",
    "revision": "speculative-draft-model-revision",
    "quantization": "speculative-draft-model-quantization",
    "attention_backend": "speculative-draft-attention-backend",
    "moe_backend": "speculative-moe-runner-backend",
}
"""Keys of a speculative config that SGLang has a flag for."""

_STEPWISE = frozenset({"mtp", "eagle", "eagle3", "draft_model"})
"""Methods that draft one token a step: their number of steps is k, where the draft is a chain (top-k 1)."""

_ENVIRONMENT = {"dspark": {"SGLANG_RAGGED_VERIFY_MODE": "static"}}
"""What a method does not work without; a config may set it otherwise."""


def argv(resolved: Resolved) -> tuple[str, ...]:
    """The engine's command, then context-length, the merged flags and those of the method by name, host and port."""
    flags = {SLOTS_FLAG: DEFAULT_SLOTS} | speculative_flags(resolved) | dict(resolved.flags)
    length = ["--context-length", str(resolved.server.max_model_len)]
    return (*words.start(resolved), *length, *words.rendered(flags), *words.listen(resolved))


def environment(resolved: Resolved) -> dict[str, str]:
    """Variables as merged, with what the method needs."""
    return _ENVIRONMENT.get(resolved.method.kind, {}) | dict(resolved.environment)


def speculative_flags(resolved: Resolved) -> dict[str, Any]:
    """The method's own flags; empty for the baseline and for a method that SGLang does not have (which is infeasible)."""
    kind, k = resolved.method.kind, resolved.server.k
    if resolved.speculative is None or kind not in ALGORITHMS:
        return {}
    flags: dict[str, Any] = {"speculative-algorithm": ALGORITHMS[kind]} | _widths(kind, k)
    if kind == "mtp":
        # The head is inside the target.
        flags["speculative-draft-model-path"] = resolved.model.target
    given = {flag: resolved.speculative.get(key) for key, flag in DRAFTER_FLAGS.items()}
    return flags | {flag: value for flag, value in given.items() if value is not None}


def _widths(kind: str, k: int) -> dict[str, int]:
    """How many tokens are drafted and verified in one step, in the knobs of the method."""
    if kind in _STEPWISE:
        steps = {"speculative-num-steps": k, "speculative-eagle-topk": 1}
        return steps | {"speculative-num-draft-tokens": k + 1}
    if kind == "dspark":
        return {"speculative-dspark-block-size": k}  # the one knob that counts drafted tokens only
    if kind == "dflash":
        return {"speculative-dflash-block-size": k + 1}
    return {"speculative-num-draft-tokens": k + 1}
