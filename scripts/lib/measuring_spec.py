"""What one measuring job is told. Apart from measuring itself, which pulls in the client."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class MeasureSpec:
    """Travels from the Snakefile as a file of JSON. Paths are relative to the working directory, times in seconds."""

    cell: dict[str, str | int]
    key: str
    identity: dict[str, object]
    store: str
    scenario_file: str
    scenario_sha256: str
    requests: int
    warmup_requests: int
    request_timeout_s: float
    stall_timeout_s: float
    token_ids: bool
    salt: str
    """Seeds the prompts' nonces. Alike for all methods and repeats, so that they answer the same prompts and can be held
    against each other; other at each concurrency, so that no cell of a boot finds its prompts in the prefix cache."""
    api_key_name: str | None = None
    beside: dict[str, str | int] | None = None
    """Of a second server on the device: label, scenario_file, concurrency (0: it is left idle), and `method`, the first's kind."""

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> MeasureSpec:
        return cls(**json.loads(text))
