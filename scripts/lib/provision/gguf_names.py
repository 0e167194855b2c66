"""A Llama model in a GGUF file as a Hugging Face checkpoint: names, the order of rotary dimensions, the config (NumPy only)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

_OUTSIDE = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_INSIDE = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}


def checkpoint_name(name: str) -> str:
    """The checkpoint's name for a tensor of the file. Raises ValueError for a tensor that a Llama model does not have."""
    if name in _OUTSIDE:
        return _OUTSIDE[name]
    match = re.fullmatch(r"blk\.(\d+)\.(\w+)\.weight", name)
    if match and match[2] in _INSIDE:
        return f"model.layers.{match[1]}.{_INSIDE[match[2]]}.weight"
    raise ValueError(f"the GGUF file has a tensor {name}, which no Llama model has")


def unpermuted(rows: np.ndarray, heads: int) -> np.ndarray:
    """Rows of a query or key projection in the checkpoint's order, undoing the file's.

    A head's rotary pairs are rows (i, i + d/2) in a checkpoint and (2i, 2i + 1) in a GGUF file, which interleaves them.
    """
    size = len(rows) // heads
    return rows.reshape(heads, size // 2, 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def checkpoint_tensor(name: str, tensor: np.ndarray, heads: int, kv_heads: int) -> tuple[str, np.ndarray]:
    """Name and value in the checkpoint of the file's tensor `name`."""
    if name.endswith("attn_q.weight"):
        tensor = unpermuted(tensor, heads)
    elif name.endswith("attn_k.weight"):
        tensor = unpermuted(tensor, kv_heads)
    return checkpoint_name(name), tensor


def checkpoint_config(metadata: Mapping[str, Any], vocabulary: int) -> dict[str, Any]:
    """config.json for the metadata of a Llama GGUF file with tied embeddings. Raises ValueError for another architecture."""
    if metadata["general.architecture"] != "llama":
        raise ValueError(f"the GGUF file holds a {metadata['general.architecture']} model, not a Llama model")
    hidden, heads = metadata["llama.embedding_length"], metadata["llama.attention.head_count"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": metadata["tokenizer.ggml.bos_token_id"],
        "eos_token_id": metadata["tokenizer.ggml.eos_token_id"],
        "pad_token_id": metadata["tokenizer.ggml.padding_token_id"],
        "dtype": "bfloat16",
        "head_dim": hidden // heads,
        "hidden_act": "silu",
        "hidden_size": hidden,
        "initializer_range": 0.02,
        "intermediate_size": metadata["llama.feed_forward_length"],
        "max_position_embeddings": metadata["llama.context_length"],
        "mlp_bias": False,
        "num_attention_heads": heads,
        "num_hidden_layers": metadata["llama.block_count"],
        "num_key_value_heads": metadata["llama.attention.head_count_kv"],
        "rms_norm_eps": metadata["llama.attention.layer_norm_rms_epsilon"],
        "rope_parameters": {"rope_theta": metadata["llama.rope.freq_base"], "rope_type": "default"},
        "tie_word_embeddings": True,
        "use_cache": True,
        "vocab_size": vocabulary,
    }
