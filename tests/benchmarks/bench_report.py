"""What plots and report of a large sweep cost: `python -m tests.benchmarks.bench_report [CELLS]` (10000).

Invents the cells of four machines, three lengths, three scenarios, 26 servers, five concurrencies and repeats enough, then prints
seconds, sizes and peak memory of drawing and of writing the page."""

from __future__ import annotations

import itertools
import resource
import sys
import tempfile
import time
from pathlib import Path

from scripts.lib.plots.catalogue import DRAW
from scripts.lib.plots.files import write_plot
from scripts.lib.plots.names import TITLES
from scripts.lib.report.page import Picture, render
from scripts.lib.report.pictures import caption, embedded
from tests.evidence_factory import cell
from tests.report.pages import CAPTIONS, results
from tests.results_factory import measured

METHODS = [
    ("none", 0),
    *((method, k) for method in ("mtp", "eagle", "ngram", "suffix", "dspark") for k in range(1, 6)),
]
MACHINES, LENGTHS, SCENARIOS = (
    ("cpu", "dgx-spark", "h100", "h200"),
    (1024, 4096, 16384),
    ("chat", "code", "summary"),
)
CONCURRENCIES = (1, 2, 4, 8, 16)


def records(count: int) -> list[dict]:
    """`count` records, all repeats of one point after another."""
    axes = itertools.product(SCENARIOS, LENGTHS, MACHINES, CONCURRENCIES, METHODS)
    cells = (
        cell(method, k, concurrency, length, scenario, repeat, hardware)
        for scenario, length, hardware, concurrency, (method, k) in axes
        for repeat in (1, 2, 3)
    )
    return [measured(at) for at in itertools.islice(cells, count)]


def timed(name: str, began: float) -> float:
    print(f"{name:<22}{time.perf_counter() - began:8.1f} s", flush=True)
    return time.perf_counter()


def main(count: int) -> None:
    began = time.perf_counter()
    whole = results(records(count))
    points = whole.points
    began = timed(f"{len(whole.cells)} cells to tables", began)
    with tempfile.TemporaryDirectory() as folder:
        for name, draw in DRAW.items():
            write_plot(draw(points), Path(folder, name), TITLES[name])
        began = timed(f"{len(DRAW)} plots", began)
        pictures = [
            Picture(
                name,
                embedded(Path(folder, f"{name}.svg").read_text(), name),
                caption(Path(CAPTIONS, f"{name}.rst").read_text()),
            )
            for name in DRAW
        ]
        page = render(whole, pictures, lambda server: None)
        timed("page", began)
        sizes = sum(len(picture.svg) for picture in pictures)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{len(points)} points, page {len(page) / 2**20:.1f} MiB, plots in it {sizes / 2**20:.1f} MiB, peak memory {peak / 1024:.0f} MiB"
    )
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
