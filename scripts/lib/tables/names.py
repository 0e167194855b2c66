"""Names of the final tables, apart from what builds them: the Snakefile needs them and must not import polars."""

FINAL_TABLES = (
    "throughput",
    "latency",
    "k_sweep",
    "acceptance",
    "kv_cache",
    "kv_requests",
    "startup",
    "energy",
    "hardware",
    "beside",
    "validity",
)
"""Each is written as csv, md and parquet."""
