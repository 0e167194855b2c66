"""Checkpoints rewritten: names and shapes, with NumPy arrays for tensors."""

import numpy as np
import pytest

from scripts.lib.provision import forms


def llama(layers=3, width=4, inner=6, kv=2):
    random = np.random.default_rng(0)
    weights = {
        "model.embed_tokens.weight": random.random((8, width)),
        "model.norm.weight": random.random(width),
    }
    for layer in range(layers):
        shapes = {
            "self_attn.q_proj": (width, width),
            "self_attn.k_proj": (kv, width),
            "self_attn.v_proj": (kv, width),
            "self_attn.o_proj": (width, width),
            "mlp.gate_proj": (inner, width),
            "mlp.up_proj": (inner, width),
            "mlp.down_proj": (width, inner),
            "input_layernorm": (width,),
            "post_attention_layernorm": (width,),
        }
        for name, shape in shapes.items():
            weights[f"model.layers.{layer}.{name}.weight"] = random.random(shape)
    return weights


def zeros(*shape):
    return np.zeros(shape)


def ones(*shape):
    return np.ones(shape)


def test_kept_layers_are_renumbered_in_order():
    weights = llama()
    cut = forms.keep_layers(weights, [0, 2])
    name = "mlp.up_proj.weight"
    assert cut[f"model.layers.1.{name}"] is weights[f"model.layers.2.{name}"]
    assert not any(".layers.2." in key for key in cut)
    assert cut["model.norm.weight"] is weights["model.norm.weight"]
    assert forms.keep_layers(weights, [0, 1, 2]) == weights


def test_a_layer_above_nine_is_not_taken_for_a_shorter_number():
    weights = {f"model.layers.{layer}.x.weight": layer for layer in range(12)}
    assert forms.keep_layers(weights, [1]) == {"model.layers.0.x.weight": 1}
    assert forms.layer_weights(weights, 11) == {"x.weight": 11}


def test_a_layer_that_is_not_there_is_an_error():
    with pytest.raises(ValueError, match="no layer 3"):
        forms.keep_layers(llama(), [0, 3])


def test_the_mimo_form_keeps_every_weight_but_the_final_norm_and_adds_zero_biases():
    weights = llama()
    head = forms.mtp_head(forms.layer_weights(weights, 2), np.ones((4, 8)), np.ones((4, 6)), zeros, ones)
    output = np.ones((8, 4))
    mimo = forms.mimo_form(weights, head, output, zeros, ones)
    assert all(mimo[name] is value for name, value in weights.items() if name != "model.norm.weight")
    assert (mimo["model.norm.weight"] == 1).all()  # its weight is in the output layer
    assert mimo["lm_head.weight"] is output
    biases = {name: value for name, value in mimo.items() if name.endswith(".bias")}
    assert len(biases) == 4 * 3  # three layers and the head, q, k and v each
    assert all(len(value) == len(mimo[name.replace(".bias", ".weight")]) for name, value in biases.items())
    assert not any(value.any() for value in biases.values())


def test_an_mtp_head_silences_attention_and_carries_what_was_fitted():
    layer = forms.layer_weights(llama(), 2)
    projection, down = np.full((4, 8), 2.0), np.full((4, 6), 3.0)
    head = forms.mtp_head(layer, projection, down, zeros, ones)
    assert head["input_proj.weight"] is projection
    assert head["mlp.down_proj.weight"] is down
    assert not head["self_attn.o_proj.weight"].any()
    assert head["mlp.gate_proj.weight"] is layer["mlp.gate_proj.weight"]
    for norm in ("hidden", "token", "final"):
        assert (head[f"{norm}_layernorm.weight"] == 1).all()


def test_an_eagle_head_has_no_input_norm():
    layer = forms.layer_weights(llama(), 2)
    head = forms.eagle_head(layer, np.ones((4, 8)), np.ones((4, 6)), zeros)
    assert "layers.0.input_layernorm.weight" not in head
    assert "layers.0.post_attention_layernorm.weight" in head
    assert not head["layers.0.self_attn.o_proj.weight"].any()
    assert {name.split(".")[0] for name in head} == {"layers", "fc"}


def test_configs_change_only_what_the_form_needs():
    config = {
        "architectures": ["LlamaForCausalLM"],
        "mlp_bias": False,
        "hidden_size": 4,
        "num_hidden_layers": 3,
    }
    mimo = forms.mimo_config(config)
    assert mimo["architectures"] == ["MiMoForCausalLM"]
    assert mimo["num_nextn_predict_layers"] == 1
    assert mimo["hidden_size"] == 4
    assert "mlp_bias" not in mimo
    assert mimo["tie_word_embeddings"] is False
    assert forms.with_layers(config, 1) == config | {"num_hidden_layers": 1}
    assert config["num_hidden_layers"] == 3
