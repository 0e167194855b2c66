"""Reading and writing checkpoints (runs on an engine's Python: torch and safetensors are imported when needed)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

WEIGHTS, CONFIG = "model.safetensors", "config.json"
_BESIDE_WEIGHTS = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json")


def read_weights(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(folder / WEIGHTS)


def read_config(folder: Path) -> dict[str, Any]:
    return json.loads((folder / CONFIG).read_text(encoding="utf-8"))


def write_checkpoint(folder: Path, weights: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """Weights in bfloat16 and the config. Tensors that share memory are written twice."""
    import torch
    from safetensors.torch import save_file

    tensors = {
        name: torch.as_tensor(value).to(torch.bfloat16).contiguous().clone()
        for name, value in weights.items()
    }
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    (folder / CONFIG).write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")


def copy_tokenizer(source: Path, folder: Path) -> None:
    for name in _BESIDE_WEIGHTS:
        shutil.copyfile(source / name, folder / name)


def as_array(tensor: Any) -> Any:
    """A torch tensor as a float32 NumPy array."""
    return tensor.float().numpy()


def zeros(*shape: int) -> Any:
    import torch

    return torch.zeros(shape, dtype=torch.bfloat16)


def ones(*shape: int) -> Any:
    import torch

    return torch.ones(shape, dtype=torch.bfloat16)
