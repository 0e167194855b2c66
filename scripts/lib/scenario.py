"""Workload shapes: which requests a cell sends. Read from config/scenarios/NAME.yaml."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from scripts.lib import config_errors
from scripts.lib.config import read_yaml

REQUEST_FORMAT = 1
"""Raised when the same scenario file turns into other requests; part of the content hash."""

Phase = Literal["warmup", "measure"]


@dataclass(frozen=True)
class Prompt:
    id: str
    text: str


@dataclass(frozen=True)
class Request:
    """`body` holds the arguments of the openai client's chat.completions.create, without model and stream
    options.
    """

    index: int
    prompt_id: str
    body: dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    """Prompts are sent in rotation; `max_tokens` and `min_tokens` count output tokens of one request."""

    name: str
    description: str
    prompts: tuple[Prompt, ...]
    warmup_prompts: tuple[Prompt, ...]
    max_tokens: int
    min_tokens: int | None
    ignore_eos: bool
    temperature: float
    top_p: float
    seed: int | None
    chat_template_kwargs: Mapping[str, Any]
    nonce: bool

    @property
    def sha256(self) -> str:
        """Digest of what decides the requests; name, description and comments do not."""
        content = {key: value for key, value in vars(self).items() if key not in ("name", "description")}
        for key in ("prompts", "warmup_prompts"):
            content[key] = [[prompt.id, prompt.text] for prompt in content[key]]
        text = json.dumps([REQUEST_FORMAT, content], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def requests(self, phase: Phase, count: int, salt: str) -> tuple[Request, ...]:
        """The first `count` requests of a phase. The same arguments give the same requests.

        `salt` must differ between measurements that could share a prefix cache; the nonce is derived from it.
        """
        prompts = self.prompts if phase == "measure" else self.warmup_prompts
        return tuple(
            self._request(phase, index, prompts[index % len(prompts)], salt) for index in range(count)
        )

    def _request(self, phase: Phase, index: int, prompt: Prompt, salt: str) -> Request:
        content = prompt.text
        if self.nonce:
            digest = hashlib.sha256(f"{salt}|{phase}|{index}".encode()).hexdigest()
            content = f"[{digest[:12]}] {content}"
        body: dict[str, Any] = {
            "messages": [{"role": "user", "content": content}],
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
        }
        if self.seed is not None:
            # One seed for all would make every repetition of a prompt answer alike.
            body["seed"] = self.seed + index
        extra: dict[str, Any] = {}
        if self.min_tokens is not None:
            extra["min_tokens"] = self.min_tokens
        if self.ignore_eos:
            extra["ignore_eos"] = True
        if self.chat_template_kwargs:
            extra["chat_template_kwargs"] = dict(self.chat_template_kwargs)
        return Request(index, prompt.id, body | ({"extra_body": extra} if extra else {}))


def load_scenario(path: Path) -> Scenario:
    """Read a scenario file. Raises ConfigError naming the file, the key and the nearest legal value."""
    path = Path(path)
    data = config_errors.check(read_yaml(path), "scenario", str(path))
    output, sampling = data["output"], data["sampling"]
    minimum = output["min_tokens"]
    if minimum is not None and minimum > output["max_tokens"]:
        raise config_errors.ConfigError(
            f"{path}: output.min_tokens: {minimum} is more than max_tokens, {output['max_tokens']}"
        )
    shared = set(data["prompts"].values()) & set(data["warmup_prompts"].values())
    if shared:
        raise config_errors.ConfigError(
            f"{path}: warmup_prompts: a measured prompt is among them ({min(shared)[:40]!r}); use others"
        )
    return Scenario(
        name=path.stem,
        description=data["description"],
        prompts=tuple(Prompt(key, text.strip()) for key, text in data["prompts"].items()),
        warmup_prompts=tuple(Prompt(key, text.strip()) for key, text in data["warmup_prompts"].items()),
        max_tokens=output["max_tokens"],
        min_tokens=minimum,
        ignore_eos=output["ignore_eos"],
        temperature=float(sampling["temperature"]),
        top_p=float(sampling["top_p"]),
        seed=sampling["seed"],
        chat_template_kwargs=data["chat_template_kwargs"],
        nonce=data["nonce"],
    )
