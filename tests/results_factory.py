"""Invented sweeps as tables: records with plausible figures, judged and compared by the project's own code."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import polars as pl

from scripts.lib.cell import Cell
from scripts.lib.tables.cells import cells_table
from scripts.lib.tables.points import points_table
from tests import record_factory
from tests.evidence_factory import cell

METHODS = (("none", 0), ("mtp", 1), ("mtp", 3), ("ngram", 1), ("ngram", 3))
_KEPT = {"mtp": 0.8, "eagle": 0.65, "ngram": 0.4, "suffix": 0.5, "dspark": 0.75}
_SCALE = {"cpu": 1.0, "dgx-spark": 3.0, "h200": 12.0}
_SCATTER = (0.0, 0.01, -0.01, 0.005, -0.005)


def measured(at: Cell, **values: object) -> dict[str, object]:
    """A cell that gains less from speculation as concurrency grows, and scatters by two percent over its repeats."""
    k, concurrency, method = at.server.k, at.concurrency, at.server.method
    shares = [_KEPT.get(method, 0.5) ** (position + 1) for position in range(k)]
    length = 1 + sum(shares)
    speed = length / (1 + 0.12 * k + 0.02 * k * concurrency) if k else 1.0
    scatter = 1 + _SCATTER[(at.repeat - 1 + k) % len(_SCATTER)]
    alone = 24 * _SCALE.get(at.server.hardware, 1.0) * scatter / (1 + 0.12 * (concurrency - 1))
    fits = (90_112 - 4_000 * k) / at.server.max_model_len
    known = {
        "tokens_per_request": 64.0,
        "ttft_median_s": 0.08 * concurrency,
        "tpot_median_s": 1 / (alone * speed),
        "tpot_mean_s": 1 / (alone * speed),
        "kv_cache_tokens": 90_112 - 4_000 * k,
        "max_concurrency": fits,
        "startup_health_s": 36.0 + 4 * k,
        "startup_ready_s": 38.0 + 4 * k,
        "model_load_s": 8.0 + k,
        "init_s": 12.0,
        "compile_s": 7.0,
        "capture_s": 2.0,
        "command": f"vllm serve models/{at.server.model} --max-model-len {at.server.max_model_len} --port 8000",
        "engine_version": "0.27.1",
        "host": "bench-1",
        "device": "AMD EPYC, 2 cores",
        "started_at": f"2026-11-30T07:{at.repeat:02d}:00Z",
        "finished_at": f"2026-11-30T07:{at.repeat:02d}:50Z",
    }
    if k:
        known |= {"acceptance_length": length, "acceptance_per_position": shares, "tokens_per_step": length}
    return record_factory.measured(at, alone * speed * concurrency, **(known | values))


def sweep(
    methods: Sequence[tuple[str, int]] = METHODS,
    concurrencies: Sequence[int] = (1, 2, 4, 8),
    repeats: int = 3,
    **axes: object,
) -> list[dict[str, object]]:
    """Records of a whole product; keyword arguments are further axes of `cell`, a tuple being several values."""
    names, lists = list(axes), [value if isinstance(value, tuple) else (value,) for value in axes.values()]
    return [
        measured(cell(method, k, concurrency, repeat=repeat, **dict(zip(names, chosen, strict=True))))
        for chosen in itertools.product(*lists)
        for method, k in methods
        for concurrency in concurrencies
        for repeat in range(1, repeats + 1)
    ]


def with_trouble() -> list[dict[str, object]]:
    """A sweep of every kind of row: failed, infeasible, mislabelled, damaged, incomplete, unfair, synthetic."""
    return [
        *sweep(repeats=3),
        *(record_factory.failed(cell("eagle", 3, concurrency)) for concurrency in (1, 2)),
        record_factory.infeasible(cell("mtp", 5)),
        record_factory.mislabelled(cell("mtp", 3, 16), 90.0),
        record_factory.damaged(cell("ngram", 3, 16)),
        measured(cell("suffix", 8, 1), completed=4, failed=4),
        measured(cell("none", 0, 32), max_num_seqs=256),
        measured(cell("suffix", 8, 32), max_num_seqs=8),
        measured(cell("dspark", 4, 1), synthetic=True),
    ]


def with_a_bad_baseline() -> list[dict[str, object]]:
    """A sweep on two machines in which `none` was measured for an instant only."""
    return [
        record | ({"wall_s": 0.2} if record["method"] == "none" else {})
        for record in sweep(concurrencies=(1, 4), repeats=2, hardware=("cpu", "h200"))
    ]


def all_failed() -> list[dict[str, object]]:
    return [record_factory.failed(cell(method, k)) for method, k in METHODS]


def tables(records: Iterable[dict[str, object]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(cells, points)."""
    cells = cells_table(records)
    return cells, points_table(cells)


CASES = {
    "whole": sweep,
    "single runs": lambda: sweep(repeats=1),
    "trouble": with_trouble,
    "machines": lambda: sweep(hardware=("cpu", "dgx-spark", "h200"), max_model_len=(1024, 4096), repeats=2),
    "baseline alone": lambda: sweep(methods=METHODS[:1]),
    "without baseline": lambda: sweep(methods=METHODS[1:]),
    "bad baseline": with_a_bad_baseline,
    "all failed": all_failed,
    "empty": list,
}
"""Records by what is the matter with them."""
