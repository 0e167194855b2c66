"""The plots by name and title, without what it takes to draw them: rules need no more."""

from __future__ import annotations

TITLES = {
    "speedup": "Speed-up over no speculation",
    "throughput": "Total throughput against concurrency",
    "pareto": "Tokens/s per user against tokens/s per device",
    "k_curve": "How many speculative tokens",
    "acceptance": "Drafted tokens kept, by position",
    "kv_cache": "KV cache left by each method",
    "startup": "Start-up time by phase",
    "hardware": "Machines and engines side by side",
}
"""Of results/plots/{name}.*, in the order of the report."""
