"""Which final tables there are, and what a run prints at its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from scripts.lib.cell import BASELINE
from scripts.lib.tables.acceptance import acceptance_table, acceptance_text
from scripts.lib.tables.beside import beside_table, beside_text
from scripts.lib.tables.cells import write_table
from scripts.lib.tables.energy import energy_table, energy_text
from scripts.lib.tables.failures import counts_line, failures_table, failures_text, incomplete, without_result
from scripts.lib.tables.hardware import hardware_table, hardware_text
from scripts.lib.tables.k_sweep import k_sweep_table, k_sweep_text
from scripts.lib.tables.kv_cache import kv_cache_table, kv_cache_text
from scripts.lib.tables.kv_requests import kv_requests_table, kv_requests_text
from scripts.lib.tables.latency import latency_table, latency_text
from scripts.lib.tables.outputs import warnings
from scripts.lib.tables.startup import startup_table, startup_text
from scripts.lib.tables.throughput import throughput_table, throughput_text
from scripts.lib.tables.validity import validity_line, validity_table, validity_text

_MOST_LINES = 60
CELLS, POINTS = "cells", "points"


@dataclass(frozen=True)
class Final:
    """A final table: `{name}.csv` and `{name}.parquet` from `table`, `{name}.md` from `text` under `title`. `source`:
    what it is built from, cells or points."""

    title: str
    source: str
    table: Callable[[pl.DataFrame], pl.DataFrame]
    text: Callable[[pl.DataFrame], list[str]]


FINALS = {
    "throughput": Final("Throughput", POINTS, throughput_table, throughput_text),
    "latency": Final("Latency", POINTS, latency_table, latency_text),
    "k_sweep": Final("Number of speculative tokens", POINTS, k_sweep_table, k_sweep_text),
    "acceptance": Final("Acceptance of drafted tokens", POINTS, acceptance_table, acceptance_text),
    "kv_cache": Final("KV cache and memory", CELLS, kv_cache_table, kv_cache_text),
    "kv_requests": Final("KV cache of a request", CELLS, kv_requests_table, kv_requests_text),
    "startup": Final("Start-up time", CELLS, startup_table, startup_text),
    "energy": Final("Energy, power and memory of the GPUs", POINTS, energy_table, energy_text),
    "hardware": Final("Machines and engines side by side", POINTS, hardware_table, hardware_text),
    "beside": Final("Two servers on one device", CELLS, beside_table, beside_text),
    "validity": Final("Validity", CELLS, validity_table, validity_text),
}
"""By name, as in names.FINAL_TABLES."""
FAILURES = "failures"


def write_final(cells: pl.DataFrame, points: pl.DataFrame, folder: Path) -> None:
    """Write every final table and the failures into `folder`, each as {name}.csv, {name}.parquet and {name}.md."""
    folder.mkdir(parents=True, exist_ok=True)
    sources = {CELLS: cells, POINTS: points}
    for name, final in FINALS.items():
        table = final.table(sources[final.source])
        write_table(table, folder / f"{name}.parquet", folder / f"{name}.csv")
        _write(folder / f"{name}.md", final.title, final.text(table))
    write_table(failures_table(cells), folder / f"{FAILURES}.parquet", folder / f"{FAILURES}.csv")
    _write(folder / f"{FAILURES}.md", "Failures", failures_text(cells))


def _write(path: Path, title: str, lines: list[str]) -> None:
    path.write_text("\n".join([f"# {title}", "", *lines]) + "\n", encoding="utf-8")


def summary_lines(
    cells: pl.DataFrame,
    points: pl.DataFrame,
    folder: str = "results/tables",
    outputs: pl.DataFrame | None = None,
) -> list[str]:
    """What to print at the end of a run: the main table, then what is missing from it or doubtful and where to read
    on."""
    main = throughput_text(throughput_table(points))
    if len(main) > _MOST_LINES:
        main = [*main[:_MOST_LINES], f"... {len(main) - _MOST_LINES} more lines in {folder}/throughput.md"]
    lines = [*main, ""]
    partly, noted = len(incomplete(cells)), (cells["notes"].list.len() > 0).sum()
    if doubts := validity_line(cells):
        lines.append(f"{doubts} Read {folder}/validity.md")
    if len(without_result(cells)):
        lines.append(f"{counts_line(cells)} Read {folder}/{FAILURES}.md")
    if outputs is not None and (differing := len(warnings(outputs))):
        lines.append(
            f"{differing} of {len(outputs)} points answer otherwise than `{BASELINE}` does. Read {folder}/outputs.md"
        )
    if partly:
        lines.append(
            f"{partly} of {len(cells)} cells lost some of their requests. Read {folder}/{FAILURES}.md"
        )
    if noted:
        lines.append(f"{noted} of {len(cells)} cells have remarks. Read {folder}/{FAILURES}.md")
    lines.append(f"All tables: {folder}. On one page, with plots: snakemake --cores 1 report")
    return lines
