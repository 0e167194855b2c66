"""The chat model in MiMo form, with a multi-token-prediction head fitted to it (runs on an engine's Python).

A Llama model is a Qwen2 model whose biases are zero, and MiMo is Qwen2 with prediction layers: the same weights, one more layer.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from scripts.lib.provision import activations, forms
from scripts.lib.provision.checkpoint import copy_tokenizer, ones, write_checkpoint, zeros
from scripts.lib.provision.fitting import Activations, fit_mtp
from scripts.lib.provision.head_target import read_target


def build(models: Path, out: Path, say: Callable[[str], None]) -> dict[str, object]:
    weights, config, last, target = read_target(models / "smollm2")
    say("fitting the prediction head")
    head, acceptance = fit_mtp(target, Activations.read(models / "smollm2-activations" / activations.FILE))
    say("writing the checkpoint")
    layer = forms.mtp_head(last, head.projection, head.down, zeros, ones)
    write_checkpoint(
        out, forms.mimo_form(weights, layer, target.output, zeros, ones), forms.mimo_config(config)
    )
    copy_tokenizer(models / "smollm2", out)
    return {"held_out_acceptance": acceptance}
