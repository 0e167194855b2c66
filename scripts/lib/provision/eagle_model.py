"""An EAGLE head for the chat model in MiMo form (runs on an engine's Python).

Embeddings and output layer are the target's. It does not fit the plain model: vLLM's MiMo hands states to heads before the
final norm, its Llama after it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from scripts.lib.provision import activations, forms
from scripts.lib.provision.checkpoint import copy_tokenizer, write_checkpoint, zeros
from scripts.lib.provision.fitting import Activations, fit_eagle
from scripts.lib.provision.head_target import read_target


def build(models: Path, out: Path, say: Callable[[str], None]) -> dict[str, object]:
    _, config, last, target = read_target(models / "smollm2")
    say("fitting the EAGLE head")
    head, acceptance = fit_eagle(target, Activations.read(models / "smollm2-activations" / activations.FILE))
    write_checkpoint(
        out, forms.eagle_head(last, head.projection, head.down, zeros), forms.with_layers(config, 1)
    )
    copy_tokenizer(models / "smollm2", out)
    return {"held_out_acceptance": acceptance}
