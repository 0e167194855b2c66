"""vLLM's command line for a resolved server."""

from __future__ import annotations

from typing import Any

from scripts.lib.engines import words
from scripts.lib.resolve import Resolved

MARLIN_MTP_BACKEND = "triton"
"""Given to an MTP head when the target runs on marlin: marlin refuses the head's unquantised experts
(spec.md).
"""


def argv(resolved: Resolved) -> tuple[str, ...]:
    """The engine's command, then max-model-len, the merged flags by name, the speculative config, host and
    port.
    """
    parts = [*words.start(resolved), "--max-model-len", str(resolved.server.max_model_len)]
    parts += words.rendered(resolved.flags)
    if resolved.speculative is not None:
        parts += words.flag_words("speculative-config", speculative_config(resolved))
    return (*parts, *words.listen(resolved))


def environment(resolved: Resolved) -> dict[str, str]:
    """Variables as merged: vLLM's methods need none of their own."""
    return dict(resolved.environment)


def speculative_config(resolved: Resolved) -> dict[str, Any]:
    """The JSON argument: method, model, num_speculative_tokens first, then the rest by name."""
    keys = dict(resolved.speculative or {})
    if keys.get("method") == "mtp" and resolved.flags.get("moe-backend") == "marlin":
        keys.setdefault("moe_backend", MARLIN_MTP_BACKEND)
    first = [key for key in ("method", "model", "num_speculative_tokens") if key in keys]
    return {key: keys[key] for key in (*first, *sorted(keys.keys() - set(first)))}
