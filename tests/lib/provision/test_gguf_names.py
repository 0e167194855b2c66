"""A GGUF file's tensors and metadata as a checkpoint's."""

import numpy as np
import pytest

from scripts.lib.provision.gguf_names import checkpoint_config, checkpoint_name, checkpoint_tensor, unpermuted

METADATA = {
    "general.architecture": "llama",
    "llama.block_count": 30,
    "llama.context_length": 8192,
    "llama.embedding_length": 576,
    "llama.feed_forward_length": 1536,
    "llama.attention.head_count": 9,
    "llama.attention.head_count_kv": 3,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.freq_base": 100000.0,
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.eos_token_id": 2,
    "tokenizer.ggml.padding_token_id": 2,
}


@pytest.mark.parametrize(
    ("name", "checkpoint"),
    [
        ("token_embd.weight", "model.embed_tokens.weight"),
        ("output_norm.weight", "model.norm.weight"),
        ("blk.0.attn_q.weight", "model.layers.0.self_attn.q_proj.weight"),
        ("blk.29.ffn_down.weight", "model.layers.29.mlp.down_proj.weight"),
        ("blk.12.ffn_norm.weight", "model.layers.12.post_attention_layernorm.weight"),
    ],
)
def test_names(name, checkpoint):
    assert checkpoint_name(name) == checkpoint


@pytest.mark.parametrize("name", ["blk.0.ssm_in.weight", "blk.0.attn_q.bias", "rope_freqs.weight"])
def test_a_tensor_of_another_architecture_is_refused_by_name(name):
    with pytest.raises(ValueError, match=name):
        checkpoint_name(name)


def test_rotary_pairs_are_taken_apart():
    # One head of six rows: the file interleaves the two halves.
    assert unpermuted(np.array([0, 3, 1, 4, 2, 5]), 1).tolist() == [0, 1, 2, 3, 4, 5]
    two_heads = np.array([0, 2, 1, 3, 10, 12, 11, 13])
    assert unpermuted(two_heads, 2).tolist() == [0, 1, 2, 3, 10, 11, 12, 13]


def test_only_queries_and_keys_are_reordered_each_with_its_number_of_heads():
    tensor = np.arange(8.0)[:, None]
    _, queries = checkpoint_tensor("blk.0.attn_q.weight", tensor, 2, 1)
    _, keys = checkpoint_tensor("blk.0.attn_k.weight", tensor, 2, 1)
    _, values = checkpoint_tensor("blk.0.attn_v.weight", tensor, 2, 1)
    assert queries.ravel().tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    assert keys.ravel().tolist() == [0, 2, 4, 6, 1, 3, 5, 7]
    assert values is tensor


def test_the_config_has_the_models_shape():
    config = checkpoint_config(METADATA, 49152)
    assert config["num_hidden_layers"] == 30
    assert config["head_dim"] == 64
    assert config["num_key_value_heads"] == 3
    assert config["rope_parameters"] == {"rope_theta": 100000.0, "rope_type": "default"}
    assert config["vocab_size"] == 49152
    assert config["tie_word_embeddings"] is True


def test_another_architecture_is_refused():
    with pytest.raises(ValueError, match="mamba"):
        checkpoint_config(METADATA | {"general.architecture": "mamba"}, 10)
