"""What the model answers to the fitting prompts, with its states: all that fitting a head needs.

Written as activations.npz: `tokens` [prompts, places] int32; `hidden` and `last_input` [prompts, places, width] float32, the
last layer's output (before the final norm) and input at the place that chose the token; `lengths` [prompts] int32, the places
up to the end of the answer. `build` runs on an engine's Python.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

PROMPTS = Path(__file__).with_name("fitting_prompts.txt")
FILE = "activations.npz"
ANSWER_TOKENS = 49
"""One more than the heads learn from: the last token has no state after it."""
_BATCH = 16


def fitting_prompts(path: Path = PROMPTS) -> list[str]:
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def places_before_end(tokens: np.ndarray, end: int) -> np.ndarray:
    """[prompts, places] -> [prompts]: how many tokens each row has up to and with the first `end`."""
    is_end = tokens == end
    return np.where(is_end.any(axis=1), is_end.argmax(axis=1) + 1, tokens.shape[1]).astype(np.int32)


def build(models: Path, out: Path, say: Callable[[str], None]) -> dict[str, object]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    say("loading the model")
    torch.manual_seed(0)
    folder = models / "smollm2"
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    prompts = fitting_prompts()
    texts = [
        tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True
        )
        for prompt in prompts
    ]
    inputs = tokenizer(texts, return_tensors="pt", padding=True)
    say(f"answering {len(prompts)} prompts")
    with torch.inference_mode():
        sequences = model.generate(**inputs, max_new_tokens=ANSWER_TOKENS, min_new_tokens=1, do_sample=False)
    say("reading the model's states")
    prompt_places = inputs["input_ids"].shape[1]
    hidden, last_input = _states(model, sequences, inputs["attention_mask"], prompt_places)
    tokens = sequences[:, prompt_places:].numpy().astype(np.int32)
    lengths = places_before_end(tokens, tokenizer.eos_token_id)
    np.savez(out / FILE, tokens=tokens, hidden=hidden, last_input=last_input, lengths=lengths)
    return {"prompts": len(prompts), "answer_tokens": int(lengths.sum())}


def _states(model: Any, sequences: Any, mask: Any, prompt_places: int) -> tuple[np.ndarray, np.ndarray]:
    """Outputs and inputs of the last layer at the places that chose the answer's tokens. The model loses its final norm."""
    import torch

    model.model.norm = torch.nn.Identity()
    after, before = [], []
    mask = torch.cat([mask, mask.new_ones(len(sequences), sequences.shape[1] - prompt_places)], dim=1)
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
    with torch.inference_mode():
        for rows in torch.arange(len(sequences)).split(_BATCH):
            states = model.model(
                input_ids=sequences[rows],
                attention_mask=mask[rows],
                position_ids=positions[rows],
                output_hidden_states=True,
            ).hidden_states
            after.append(states[-1][:, prompt_places - 1 : -1].float())
            before.append(states[-2][:, prompt_places - 1 : -1].float())
    return torch.cat(after).numpy(), torch.cat(before).numpy()
