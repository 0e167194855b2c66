"""What the jobs of a run are told, as files: a command that fails stays readable. Written when a run starts, beside the
files that the jobs make."""

from __future__ import annotations

from pathlib import Path

from scripts.lib.planning import Plan

SPEC = "spec.json"
LAUNCH = "launch.json"


def write_specs(plan: Plan, cells: Path, servers: Path) -> None:
    """Write {cells}/{cell path}/spec.json and {servers}/{boot path}/launch.json for all jobs that were planned.

    Raises OSError when that cannot be done.
    """
    for cell in plan.planned:
        _write(cells / cell.path / SPEC, plan.measure_spec(cell).to_json())
    for boot in plan.asked_boots:
        _write(servers / boot.path / LAUNCH, plan.launch_json(boot.server))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")
