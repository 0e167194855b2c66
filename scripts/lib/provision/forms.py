"""Checkpoints rewritten: fewer layers, the MiMo form with a multi-token-prediction head, an EAGLE head. Weights are dicts.

The values need only NumPy's or torch's slicing; nothing here computes with them. Names are those that vLLM 0.27.1 loads
(model_executor/models/mimo.py, mimo_mtp.py and llama_eagle.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Weights = dict[str, Any]
Zeros = Callable[..., Any]
"""Makes a tensor of zeros of the given shape, in the checkpoint's type."""

_LAYER = re.compile(r"model\.layers\.(\d+)\.(.+)")
_ATTENTION = ("q_proj", "k_proj", "v_proj")


def keep_layers(weights: Mapping[str, Any], kept: Sequence[int]) -> Weights:
    """Only the layers `kept`, renumbered in that order; everything outside layers stays. Raises ValueError for a missing one."""
    place = {layer: position for position, layer in enumerate(kept)}
    missing = set(place) - {int(match[1]) for name in weights if (match := _LAYER.fullmatch(name))}
    if missing:
        raise ValueError(f"the checkpoint has no layer {min(missing)}")
    result = {}
    for name, value in weights.items():
        match = _LAYER.fullmatch(name)
        if match is None:
            result[name] = value
        elif int(match[1]) in place:
            result[f"model.layers.{place[int(match[1])]}.{match[2]}"] = value
    return result


def layer_weights(weights: Mapping[str, Any], layer: int) -> Weights:
    """The weights of one layer, by their names within it."""
    return {
        match[2]: value
        for name, value in weights.items()
        if (match := _LAYER.fullmatch(name)) and int(match[1]) == layer
    }


def mimo_form(
    weights: Mapping[str, Any], head: Mapping[str, Any], output: Any, zeros: Zeros, ones: Zeros
) -> Weights:
    """A Llama checkpoint as MiMo with `head` as its multi-token-prediction layer: biases of zero, an output layer of its own.

    `head` has the layer's weights by their names within it, biases excepted. `output` is the output layer with the final
    norm's weight multiplied in: the norm is left without one, so that states mean the same before and after it, and a head
    that is fed its own normalized output sees what it is used to.
    """
    result = dict(weights) | {f"model.mtp_layers.0.{name}": value for name, value in head.items()}
    for name, value in list(result.items()):
        stem, _, kind = name.rpartition(".")
        if kind == "weight" and stem.endswith(_ATTENTION):
            result[f"{stem}.bias"] = zeros(len(value))
    return result | {"lm_head.weight": output, "model.norm.weight": ones(len(weights["model.norm.weight"]))}


def mimo_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The Llama `config` for `mimo_form`."""
    kept = {name: value for name, value in config.items() if name not in {"mlp_bias", "pretraining_tp"}}
    return kept | {
        "architectures": ["MiMoForCausalLM"],
        "model_type": "qwen2",
        "num_nextn_predict_layers": 1,
        "tie_word_embeddings": False,
        "use_sliding_window": False,
    }


def mtp_head(layer: Mapping[str, Any], projection: Any, down: Any, zeros: Zeros, ones: Zeros) -> Weights:
    """A MiMo prediction layer that computes rms_norm(head(rms_norm(hidden), rms_norm(embedding))).

    It is the target's last layer with attention silenced (its output projection is zero) and the fitted `projection` and `down`.
    """
    width = len(down)
    return dict(layer) | {
        "self_attn.o_proj.weight": zeros(width, width),
        "mlp.down_proj.weight": down,
        "input_proj.weight": projection,
        "hidden_layernorm.weight": ones(width),
        "token_layernorm.weight": ones(width),
        "final_layernorm.weight": ones(width),
    }


def eagle_head(layer: Mapping[str, Any], projection: Any, down: Any, zeros: Zeros) -> Weights:
    """An EAGLE head that computes head(embedding, hidden). Its layer has no input norm: vLLM refuses one there."""
    width = len(down)
    kept = {f"layers.0.{name}": value for name, value in layer.items() if name != "input_layernorm.weight"}
    return kept | {
        "fc.weight": projection,
        "layers.0.self_attn.o_proj.weight": zeros(width, width),
        "layers.0.mlp.down_proj.weight": down,
    }


def with_layers(config: Mapping[str, Any], layers: int) -> dict[str, Any]:
    return dict(config) | {"num_hidden_layers": layers}
