"""Points and cells of invented sweeps for the tests of what is recommended."""

from __future__ import annotations

import statistics
from dataclasses import replace

from scripts.lib.cell import Server
from scripts.lib.metrics import METRICS, headline
from scripts.lib.recommend.candidates import Candidate, OperatingPoint

AXES = {
    "hardware": "box",
    "engine": "vllm",
    "model": "toy",
    "max_model_len": 1024,
    "scenario": "code",
    "concurrency": 1,
}


def candidate(
    name: str, samples: list[float], concurrency: int = 1, objection: str | None = None, **figures: object
) -> Candidate:
    """`name` is `none` or `mtp k3`; `samples` are the headline metric of each repeat."""
    method, _, k = name.partition(" k")
    axes = AXES | {"method": method, "k": int(k or 0)}
    value = statistics.median(samples) if samples else None
    blank = dict.fromkeys((*METRICS, "speedup_low", "speedup_high"))
    known = {headline(concurrency): value, "aggregate_tps": value, "tokens_per_request": 100.0}
    return Candidate(
        Server.from_axes(axes),
        "code",
        concurrency,
        dict(enumerate(samples, start=1)),
        blank | known | figures,
        objection,
    )


def operating_point(*candidates: Candidate, **axes: object) -> OperatingPoint:
    known = AXES | {"concurrency": candidates[0].concurrency if candidates else 1} | axes
    of_server = {name: known[name] for name in ("hardware", "engine", "model", "max_model_len")}
    return OperatingPoint(
        known, tuple(replace(one, server=replace(one.server, **of_server)) for one in candidates)
    )
