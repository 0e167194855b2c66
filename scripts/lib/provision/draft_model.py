"""A draft model for `draft_model`: the chat model without two of its layers (runs on an engine's Python)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from scripts.lib.provision import forms
from scripts.lib.provision.checkpoint import copy_tokenizer, read_config, read_weights, write_checkpoint

DROPPED = (24, 25)
"""Late layers change the state least; a draft without more of them is accepted next to never (10 of 30 layers left: 0.000)."""


def build(models: Path, out: Path, say: Callable[[str], None]) -> dict[str, object]:
    say("dropping layers")
    source = models / "smollm2"
    config = read_config(source)
    kept = [layer for layer in range(config["num_hidden_layers"]) if layer not in DROPPED]
    write_checkpoint(out, forms.keep_layers(read_weights(source), kept), forms.with_layers(config, len(kept)))
    copy_tokenizer(source, out)
    return {"layers": len(kept)}
