"""Which engine the fake server speaks like: log, counters and pages. vLLM 0.27.1, or SGLang 0.5.15."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

from . import metrics, sglang_failures, sglang_log, sglang_metrics, sglang_startup, vllm_failures, vllm_log
from . import vllm_startup as vllm


@dataclass(frozen=True)
class Dialect:
    """`startup` and `failures` are modules with the same functions for each engine; `owner` names the engine in /v1/models."""

    startup: ModuleType
    failures: ModuleType
    log: type[vllm_log.Log]
    statistics: Callable
    exposition: Callable
    owner: str


DIALECTS = {
    "vllm": Dialect(vllm, vllm_failures, vllm_log.Log, vllm_log.Statistics, metrics.exposition, "vllm"),
    "sglang": Dialect(
        sglang_startup,
        sglang_failures,
        sglang_log.SglangLog,
        sglang_log.Batches,
        sglang_metrics.exposition,
        "sglang",
    ),
}
