"""Short ways to parse text in tests."""

from __future__ import annotations

from scripts.lib.logs import LogReport, parse_chunks


def parse(text: str) -> LogReport:
    """Report of a log given as text."""
    return parse_chunks([text.encode("utf-8")])


def vllm(
    message: str, process: str = "EngineCore pid=33", level: str = "INFO", source: str = "x.py:1"
) -> str:
    """A current vLLM record."""
    return f"({process}) {level} 11-29 18:22:15 [{source}] {message}\n"


def sglang(message: str, ranks: str = "") -> str:
    """An SGLang record."""
    return f"[2025-03-04 05:06:07{ranks}] {message}\n"
