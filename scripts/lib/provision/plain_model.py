"""SmolLM2-135M-Instruct from the GGUF file of a package, as a Hugging Face checkpoint (runs on an engine's Python)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from scripts.lib.provision.checkpoint import write_checkpoint
from scripts.lib.provision.gguf_names import checkpoint_config, checkpoint_tensor

SOURCE_FOLDER = ".source"
"""Inside the folder to fill: the unpacked package. Removed by the caller."""


def build(models: Path, out: Path, say: Callable[[str], None]) -> dict[str, object]:
    import gguf
    from transformers import AutoTokenizer

    say("reading the GGUF file")
    (path,) = sorted((out / SOURCE_FOLDER).rglob("*.gguf"))
    reader = gguf.GGUFReader(path)
    metadata = {
        name: field.contents()
        for name, field in reader.fields.items()
        if not name.startswith("tokenizer.ggml.")
    }
    for name in ("bos_token_id", "eos_token_id", "padding_token_id"):
        metadata[f"tokenizer.ggml.{name}"] = reader.fields[f"tokenizer.ggml.{name}"].contents()
    heads, kv_heads = metadata["llama.attention.head_count"], metadata["llama.attention.head_count_kv"]
    say("converting the weights")
    weights = dict(
        checkpoint_tensor(tensor.name, gguf.dequantize(tensor.data, tensor.tensor_type), heads, kv_heads)
        for tensor in reader.tensors
    )
    config = checkpoint_config(metadata, len(weights["model.embed_tokens.weight"]))
    write_checkpoint(out, weights, config)
    say("converting the tokenizer")
    AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name).save_pretrained(out)
    generation = {name: config[name] for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    (out / "generation_config.json").write_text(json.dumps(generation, indent=1) + "\n", encoding="utf-8")
    return {"source": path.name}
