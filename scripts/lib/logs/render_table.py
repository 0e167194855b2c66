"""Several reports side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scripts.lib.logs.acceptance import from_log
from scripts.lib.logs.model import LogReport
from scripts.lib.logs.registry import FACTS
from scripts.lib.logs.render import (
    ABSENT,
    GROUPS,
    SHOWN_UNITS,
    WIDTH,
    failure_lines,
    state,
    value_text,
)

_COLUMN = 16


def render_table(reports: Sequence[tuple[str, LogReport]]) -> str:
    """One column per log, rows that differ marked with *; as many columns side by side as WIDTH holds."""
    rows = list(_rows([report for _, report in reports]))
    labels = max(len(label) for label, _ in rows) + 2
    per_block = max(1, (WIDTH - labels) // _COLUMN)
    width = min(34, (WIDTH - labels) // min(per_block, len(reports)))
    shown_names = _without_common_folder([name for name, _ in reports])
    blocks = []
    for start in range(0, len(reports), per_block):
        part = reports[start : start + per_block]
        names = [_short(name, width - 2) for name in shown_names[start : start + per_block]]
        lines = [" " * labels + "".join(f"{name:>{width}}" for name in names).rstrip()]
        lines.append("-" * min(WIDTH, labels + width * len(part)))
        for label, cells in rows:
            mark = "*" if len(set(cells)) > 1 else " "
            texts = [_short(cell, width - 2) for cell in cells[start : start + per_block]]
            lines.append(
                f"{mark}{label:<{labels - 1}}" + "".join(f"{text:>{width}}" for text in texts).rstrip()
            )
        blocks.append("\n".join(line.rstrip() for line in lines))
    causes = [
        line
        for name, report in reports
        if report.failure is not None
        for line in ("", f"{name}", *failure_lines(report.failure)[:7])
    ]
    return "\n\n".join(blocks) + ("\n" + "\n".join(causes) if causes else "") + "\n\n* the logs differ here"


def _rows(reports: Sequence[LogReport]) -> Iterator[tuple[str, list[str]]]:
    yield "engine", [f"{report.engine or ABSENT} {report.version or ''}".strip() for report in reports]
    yield "state", [state(report) for report in reports]
    failures = [report.failure for report in reports]
    if any(failures):
        yield "failure", [(f.catalogue_id or f.failure_class) if f else ABSENT for f in failures]
    for _, names in GROUPS:
        for name in names:
            if any(name in report.facts for report in reports):
                unit = FACTS[name].unit
                plain_name = unit not in SHOWN_UNITS or name.endswith(("_s", "_gib", "_tokens"))
                label = name if plain_name else f"{name} ({unit})"
                yield label, [value_text(report.get(name)) for report in reports]
    acceptances = [
        from_log(report.speculation, k=report.get("num_speculative_tokens") or None) for report in reports
    ]
    if any(acceptance.length is not None for acceptance in acceptances):
        yield "acceptance_length", [value_text(acceptance.length) for acceptance in acceptances]
        yield "acceptance_rate", [ABSENT if a.rate is None else f"{a.rate:.3f}" for a in acceptances]
    loads = [report.intervals.peaks() for report in reports]
    for key, label in (("running", "running, most"), ("waiting", "waiting, most")):
        if any(load[key] is not None for load in loads):
            yield label, [value_text(None if load[key] is None else int(load[key])) for load in loads]
    if any(load["generation_tps"] is not None for load in loads):
        yield "generation tok/s, most", [value_text(load["generation_tps"]) for load in loads]
    yield "warnings", [value_text(len({notice.id for notice in report.warnings})) for report in reports]


def _without_common_folder(names: Sequence[str]) -> list[str]:
    folders = {name.rpartition("/")[0] for name in names}
    return [name.rpartition("/")[2] for name in names] if len(folders) == 1 else list(names)


def _short(text: str, width: int) -> str:
    """text cut in the middle to width, since names differ at both ends."""
    if len(text) <= width:
        return text
    keep = width - 1
    return text[: keep // 2] + "…" + text[len(text) - (keep - keep // 2) :]
