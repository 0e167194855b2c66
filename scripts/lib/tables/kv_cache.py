"""What a drafter costs in memory: KV cache, requests that fit, weights, per server."""

from __future__ import annotations

import polars as pl

from scripts.lib.tables import markdown
from scripts.lib.tables.blocks import repeats_note, server_table, server_text

_CAPTION = """As each server's start-up log says. The token figure depends on max_model_len, so it is
compared with `none` at the same length only. Fits: requests of max_model_len tokens at once (vLLM's maximum
concurrency). What a request of each scenario takes: kv_requests.md."""
_HYBRID = """Hybrid models here: the token figure is no capacity in tokens, and tokens / length is not what
fits. Go by the requests that fit."""
_IN_CSV_ONLY = ("max_concurrency_length_tokens", "kv_bytes_per_token", "hybrid")
METRICS_SHOWN = (
    "kv_cache_tokens",
    "kv_cache_change",
    "max_concurrency",
    "max_concurrency_change",
    "block_size_tokens",
    "kv_available_gib",
    "weights_gib",
)


def kv_cache_table(cells: pl.DataFrame) -> pl.DataFrame:
    """One row per server: medians over boots of the memory figures of its start-up log, change against
    `none`; `hybrid` is 1 where the cache mixes layer kinds."""
    return server_table(
        cells.with_columns(pl.col("hybrid").cast(pl.Float64)), (*METRICS_SHOWN, *_IN_CSV_ONLY)
    )


def kv_cache_text(table: pl.DataFrame) -> list[str]:
    """The table as lines of markdown."""
    hybrid = _HYBRID if (table["hybrid"] > 0).any() else ""
    lines = markdown.paragraph(f"{_CAPTION} {hybrid} {repeats_note(table, 'server')}")
    return lines + server_text(table, METRICS_SHOWN)
