"""Which final tables there are, and what a run prints at its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from scripts.lib.tables.acceptance import acceptance_table, acceptance_text
from scripts.lib.tables.cells import flat
from scripts.lib.tables.failures import counts_line, failures_text, incomplete, without_result
from scripts.lib.tables.kv_cache import kv_cache_table, kv_cache_text
from scripts.lib.tables.startup import startup_table, startup_text
from scripts.lib.tables.throughput import throughput_table, throughput_text

_MOST_LINES = 60


@dataclass(frozen=True)
class Final:
    """A final table: `{name}.csv` from `table`, `{name}.md` from `text` under `title`."""

    title: str
    table: Callable[[pl.DataFrame], pl.DataFrame]
    text: Callable[[pl.DataFrame], list[str]]


FINALS = {
    "throughput": Final("Throughput", throughput_table, throughput_text),
    "kv_cache": Final("KV cache and memory", kv_cache_table, kv_cache_text),
    "acceptance": Final("Acceptance of drafted tokens", acceptance_table, acceptance_text),
    "startup": Final("Start-up time", startup_table, startup_text),
}
FAILURES = "failures"


def write_final(cells: pl.DataFrame, folder: Path) -> None:
    """Write every final table of `cells` into `folder`: {name}.csv and {name}.md, and failures.md."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, final in FINALS.items():
        table = final.table(cells)
        flat(table).write_csv(folder / f"{name}.csv")
        _write(folder / f"{name}.md", final.title, final.text(table))
    _write(folder / f"{FAILURES}.md", "Failures", failures_text(cells))


def _write(path: Path, title: str, lines: list[str]) -> None:
    path.write_text("\n".join([f"# {title}", "", *lines]) + "\n", encoding="utf-8")


def summary_lines(cells: pl.DataFrame, folder: str = "results/tables") -> list[str]:
    """What to print at the end of a run: the main table, then what is missing from it and where to read
    on."""
    main = throughput_text(throughput_table(cells))
    if len(main) > _MOST_LINES:
        main = [*main[:_MOST_LINES], f"... {len(main) - _MOST_LINES} more lines in {folder}/throughput.md"]
    lines = [*main, ""]
    lost, partly = len(without_result(cells)), len(incomplete(cells))
    noted = (cells["notes"].list.len() > 0).sum()
    if lost:
        lines.append(f"{counts_line(cells)} Read {folder}/{FAILURES}.md")
    if partly:
        lines.append(
            f"{partly} of {len(cells)} cells lost some of their requests. Read {folder}/{FAILURES}.md"
        )
    if noted:
        lines.append(f"{noted} of {len(cells)} cells have remarks. Read {folder}/{FAILURES}.md")
    lines.append(f"All tables: {folder}")
    return lines
