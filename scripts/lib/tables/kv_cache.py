"""What a drafter costs in memory: KV cache, requests that fit, weights, per server."""

from __future__ import annotations

import polars as pl

from scripts.lib.tables import markdown
from scripts.lib.tables.blocks import repeats_note, server_table, server_text

_CAPTION = """As each server's start-up log says. The token figure depends on max_model_len, so it is
compared with `none` at the same length only. On hybrid models it is no capacity: go by what fits, the
requests of max_model_len tokens at once (vLLM's maximum concurrency)."""
_IN_CSV_ONLY = ("max_concurrency_length_tokens", "block_size_tokens", "kv_bytes_per_token")
METRICS_SHOWN = ("kv_cache_tokens", "kv_cache_change", "kv_available_gib", "max_concurrency", "weights_gib")


def kv_cache_table(cells: pl.DataFrame) -> pl.DataFrame:
    """One row per server: medians over boots of the memory figures of its start-up log, change against
    `none`."""
    return server_table(cells, (*METRICS_SHOWN, *_IN_CSV_ONLY))


def kv_cache_text(table: pl.DataFrame) -> list[str]:
    """The table as lines of markdown."""
    lines = markdown.paragraph(f"{_CAPTION} {repeats_note(table, 'server')}")
    return lines + server_text(table, METRICS_SHOWN)
