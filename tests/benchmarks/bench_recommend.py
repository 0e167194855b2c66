"""How long recommendation, analysis and K curves of 10,000 cells take: python -m tests.benchmarks.bench_recommend

Every method wins somewhere by chance, which is the worst case for the plan: hardly any configuration is dominated.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager

from scripts.lib.analysis.roofline import Facts
from scripts.lib.analysis.table import analysis_table, analysis_text
from scripts.lib.deploy.schedule import curves
from scripts.lib.recommend.build import recommend
from scripts.lib.recommend.candidates import operating_points
from scripts.lib.recommend.wishes import read_wishes
from scripts.lib.tables.cells import cells_table
from scripts.lib.tables.points import points_table
from tests.evidence_factory import cell
from tests.lib.recommend.test_traffic_plan import NO_WISHES
from tests.record_factory import measured

METHODS = [("none", 0), *((m, k) for m in ("mtp", "eagle", "dspark", "ngram", "suffix") for k in range(1, 9))]
SEED = 1


def records() -> Iterator[dict]:
    chance = random.Random(SEED)
    for model in ("small", "large"):
        for length in (1024, 2048, 4096, 8192):
            for method, k in METHODS:
                for scenario in ("chat", "code", "long"):
                    for concurrency in (1, 2, 4, 8, 16):
                        level = 50 * concurrency**0.8 * (1 + 0.1 * k * chance.random())
                        for repeat in (1, 2):
                            at = cell(method, k, concurrency, length, scenario, repeat, model=model)
                            known = {
                                "tokens_per_request": 200.0,
                                "tpot_mean_s": 0.02,
                                "acceptance_length": 2.0,
                            }
                            yield measured(at, level * chance.gauss(1, 0.02), requests=100, **known)


@contextmanager
def timed(what: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    print(f"{what:40} {time.perf_counter() - started:6.1f} s", flush=True)


def main() -> None:
    made = list(records())
    print(len(made), "cells")
    points = points_table(cells_table(made))
    with timed("recommendation, one configuration"):
        recommend(points, read_wishes(NO_WISHES), lambda server: 1)
    with timed("recommendation, two configurations"):
        recommend(points, read_wishes(NO_WISHES | {"devices": 4, "max_configurations": 2}), lambda server: 1)
    with timed("K curves"):
        curves(operating_points(points), {})
    with timed("analysis"):
        analysis_text(analysis_table(points, lambda server: Facts(100, 1.0)))


if __name__ == "__main__":
    main()
