"""One request as the client saw it, for tests of what is made of requests."""

from __future__ import annotations

from typing import Any

from scripts.lib.evidence import Request


def request(index: int = 0, **changes: Any) -> Request:
    """A request that went well: 20 tokens in a second, the first after a tenth of it."""
    values: dict[str, Any] = {
        "index": index,
        "start_s": 0.0,
        "first_token_s": 0.1,
        "end_s": 1.0,
        "prompt_tokens": 70,
        "completion_tokens": 20,
        "chunks": None,
        "finish_reason": "length",
        "error": None,
    }
    return Request(**values | changes)
