"""How each plot is drawn. A new one is a module with draw, its title in names.py, one line here and a caption in
workflow/report."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import polars as pl

from scripts.lib.plots import (
    acceptance,
    hardware,
    k_curve,
    kv_cache,
    pareto,
    speedup,
    startup,
    throughput,
)

DRAW: dict[str, Callable[[pl.DataFrame], alt.TopLevelMixin]] = {
    "speedup": speedup.draw,
    "throughput": throughput.draw,
    "pareto": pareto.draw,
    "k_curve": k_curve.draw,
    "acceptance": acceptance.draw,
    "kv_cache": kv_cache.draw,
    "startup": startup.draw,
    "hardware": hardware.draw,
}
"""By name: from the points table to a chart, or to a readable note where there is nothing to draw."""
