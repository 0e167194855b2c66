"""What heads are fitted around, read from the plain model's checkpoint (runs on an engine's Python)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scripts.lib.provision.checkpoint import as_array, read_config, read_weights
from scripts.lib.provision.fitting import Target
from scripts.lib.provision.forms import layer_weights
from scripts.lib.provision.heads import Gates


def read_target(folder: Path) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], Target]:
    """Weights, config, the last layer's weights by their names within it, and the Target of the checkpoint in `folder`."""
    weights, config = read_weights(folder), read_config(folder)
    last = layer_weights(weights, config["num_hidden_layers"] - 1)
    gates = Gates(
        as_array(last["mlp.gate_proj.weight"]),
        as_array(last["mlp.up_proj.weight"]),
        as_array(last["post_attention_layernorm.weight"]),
        config["rms_norm_eps"],
    )
    embedding = as_array(weights["model.embed_tokens.weight"])
    target = Target(embedding, embedding * as_array(weights["model.norm.weight"]), gates)
    return weights, config, last, target
