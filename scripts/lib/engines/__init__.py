"""One module per engine kind, each with `argv(resolved) -> tuple[str, ...]`."""

from __future__ import annotations

from collections.abc import Callable

from scripts.lib.engines import vllm
from scripts.lib.resolve import Resolved

ARGV: dict[str, Callable[[Resolved], tuple[str, ...]]] = {"vllm": vllm.argv}
"""The command line builder of each engine kind that the product can start."""
