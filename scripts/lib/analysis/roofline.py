"""The speed that memory bandwidth allows: decoding reads the active weights and the running requests' KV cache once a step.

    bytes per step = active weights + requests * context * KV bytes per token
    limit          = requests * tokens per step * bandwidth / bytes per step         tokens/s

Everything that is left out makes the limit higher: the drafter's own reads, activations, the further experts that more
tokens a step wake up, and the KV cache where its size is not known. So a measurement above the limit is a mistake in the
facts or in the measurement. Example: 15 GB of dense weights at 273 GB/s give 18.2 tokens/s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_GIB = 2**30
_GB = 1e9


@dataclass(frozen=True)
class Facts:
    """What is known of a server's machine and model. GB are 10^9 bytes.

    `bandwidth_gb_s`: of all its devices together. `active_share`: active / all parameters, 1 for a dense model.
    `active_weight_gb`: bytes of weights read per step, where the model file says; else they follow from the measured weights.
    `kv_bytes_per_token`: over all attention layers and ranks."""

    bandwidth_gb_s: float | None = None
    active_weight_gb: float | None = None
    active_share: float | None = None
    kv_bytes_per_token: float | None = None


@dataclass(frozen=True)
class Roof:
    """`limit_tps` in tokens/s of all requests together, `step_gb` read per step. `reason` says why they are None."""

    limit_tps: float | None = None
    step_gb: float | None = None
    kv_gb: float | None = None
    reason: str | None = None


def facts(hardware: object, model: Mapping[str, object], devices: int, kv_cache_dtype: str | None) -> Facts:
    """From the hardware's file, the `facts` of the model's file, and how the server was started."""
    bandwidth = getattr(hardware, "memory_bandwidth_gb_s", None)
    total, active = model.get("parameters_b"), model.get("active_parameters_b")
    layers = model.get("attention_layers") or (None if model.get("hybrid") else model.get("layers"))
    shape = (layers, model.get("kv_heads"), model.get("head_dim"))
    return Facts(
        bandwidth_gb_s=bandwidth and bandwidth * devices,
        active_weight_gb=model.get("active_weight_gb"),
        active_share=active / total if active and total else 1.0 if total else None,
        kv_bytes_per_token=2 * shape[0] * shape[1] * shape[2] * _kv_bytes(kv_cache_dtype)
        if all(shape)
        else None,
    )


def _kv_bytes(dtype: str | None) -> int:
    """Bytes of one value: 16 bits unless the cache is quantised."""
    return 1 if dtype and ("fp8" in dtype or "int8" in dtype) else 2


def roof(
    known: Facts, point: Mapping[str, object], weights_gib: float | None, tokens_per_step: float | None
) -> Roof:
    """The limit of a row of the points table. `weights_gib`: the target's, as the baseline's log states them."""
    if known.bandwidth_gb_s is None:
        return Roof(reason="the hardware file states no memory bandwidth")
    weights_gb = known.active_weight_gb
    if weights_gb is None and weights_gib is not None and known.active_share is not None:
        weights_gb = weights_gib * _GIB / _GB * known.active_share
    if weights_gb is None:
        return Roof(
            reason="active weights are not known: neither active_weight_gb nor parameters and measured weights"
        )
    if not tokens_per_step:
        return Roof(reason="tokens per step are not known")
    requests = int(point["concurrency"])
    kv_gb = _kv_gb(known, point, requests)
    step_gb = weights_gb + (kv_gb or 0)
    return Roof(requests * tokens_per_step * known.bandwidth_gb_s / step_gb, step_gb, kv_gb)


def _kv_gb(known: Facts, point: Mapping[str, object], requests: int) -> float | None:
    """KV cache read per step: of the prompt and, on average over an answer, half of the answer."""
    prompt, completed, answer = point["prompt_tokens"], point["completed"], point["tokens_per_request"]
    if known.kv_bytes_per_token is None or not prompt or not completed or answer is None:
        return None
    return requests * (prompt / completed + answer / 2) * known.kv_bytes_per_token / _GB
