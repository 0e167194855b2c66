"""A package index in a folder: tiny wheels that stand in for torch, vLLM and the rest, so that building needs no network."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

VLLM_FILES = {
    "vllm/__init__.py": "",
    "vllm/entrypoints/__init__.py": "",
    "vllm/entrypoints/openai/__init__.py": "",
    "vllm/entrypoints/openai/api_server.py": "",
    "vllm/v1/__init__.py": "",
    "vllm/v1/engine/__init__.py": "",
    "vllm/v1/engine/core.py": "",
    "vllm/platforms.py": "class Cpu:\n    def is_cpu(self):\n        return True\n\n\ncurrent_platform = Cpu()\n",
    "vllm/model_executor/__init__.py": "",
    "vllm/model_executor/models/__init__.py": "",
    "vllm/model_executor/models/registry.py": (
        "from collections import defaultdict\n\n\nclass Seen:\n    def inspect_model_cls(self):\n        pass\n\n\n"
        "class ModelRegistry:\n    models = defaultdict(Seen)\n"
    ),
}
BROKEN_VLLM = VLLM_FILES | {
    "vllm/__init__.py": "raise RuntimeError('operator torchvision::nms does not exist')\n"
}


def add_wheel(folder: Path, name: str, version: str, files: Mapping[str, str] | None = None) -> None:
    """Put a pure-Python wheel of `name` with `files` into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{name.replace('-', '_')}-{version}"
    contents = dict(files or {f"{name.replace('-', '_')}.py": ""})
    contents[f"{stem}.dist-info/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    contents[f"{stem}.dist-info/WHEEL"] = (
        "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    record = "".join(f"{path},,\n" for path in [*contents, f"{stem}.dist-info/RECORD"])
    contents[f"{stem}.dist-info/RECORD"] = record
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
        for path, text in contents.items():
            wheel.writestr(path, text)
