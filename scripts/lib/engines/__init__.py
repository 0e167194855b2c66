"""One module per engine kind that the product can start, each with `argv(resolved) -> tuple[str, ...]` and
`environment(resolved) -> dict[str, str]`.
"""

from __future__ import annotations

from typing import Protocol

from scripts.lib.engines import sglang, vllm
from scripts.lib.resolve import Resolved


class EngineKind(Protocol):
    """What a module here offers."""

    def argv(self, resolved: Resolved) -> tuple[str, ...]: ...

    def environment(self, resolved: Resolved) -> dict[str, str]: ...


KINDS: dict[str, EngineKind] = {"vllm": vllm, "sglang": sglang}
