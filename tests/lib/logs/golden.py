"""Golden reports of real logs.

python -m tests.lib.logs.golden          compare, exit 1 and show the differences
python -m tests.lib.logs.golden --write  accept what the parser says now; read the diff against the logs first
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from pathlib import Path

from scripts.lib.logs import LogReport, parse_path
from scripts.lib.logs.acceptance import from_log

DATA = Path(__file__).parents[2] / "data" / "logs"


def logs() -> list[Path]:
    """Every real log, plain or gzip."""
    return sorted(path for path in DATA.glob("*.log*") if path.suffix in (".log", ".gz"))


def golden_path(log: Path) -> Path:
    """Where a log's golden report stands."""
    return log.with_name(log.name.removesuffix(".gz") + ".json")


def summary(report: LogReport) -> dict:
    """What a golden report holds: everything a table uses, with the line each value came from."""
    acceptance = from_log(report.speculation, k=report.get("num_speculative_tokens") or None)
    failure = report.failure
    return {
        "engine": [report.engine, report.version, report.generation],
        "phase": report.phase,
        "ready": report.ready,
        "stopped": report.shutdown_offset is not None,
        "boots": report.boots,
        "lines": report.lines,
        "size_bytes": report.size_bytes,
        "facts": {
            name: {
                "value": fact.value,
                "line": fact.line,
                "process": fact.process,
                "dialect": fact.dialect,
                **({"note": fact.note} if fact.note else {}),
            }
            for name, fact in sorted(report.facts.items())
        },
        "missing": dict(sorted(report.missing.items())),
        "intervals": [
            [
                s.line,
                s.kind,
                s.running,
                s.waiting,
                s.kv_usage_percent,
                s.prompt_tps,
                s.generation_tps,
                s.prefix_hit_percent,
            ]
            for s in report.intervals
        ],
        "speculation": [
            [
                s.line,
                s.dialect,
                s.accepted,
                s.drafted,
                _round(s.drafts),
                s.mean_length,
                s.k,
                list(s.per_position),
            ]
            for s in report.speculation
        ],
        "acceptance": [
            _round(acceptance.length),
            _round(acceptance.rate),
            acceptance.accepted,
            acceptance.exact,
        ],
        "warnings": [[notice.line, notice.id, dict(notice.values)] for notice in report.warnings],
        "memory_steps": [[step.line, step.step, step.avail_gib] for step in report.memory_steps],
        "failure": None
        if failure is None
        else {
            "line": failure.line_number,
            "process": failure.process,
            "class": failure.failure_class,
            "id": failure.catalogue_id,
            "phase": failure.phase,
            "root": failure.root_line,
            "values": dict(failure.values),
            "chain": [[link.role, link.line, link.process] for link in failure.chain],
        },
    }


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def text(report: LogReport) -> str:
    """The golden file's text: one line per entry of the series, so that differences are readable."""
    lines = []
    for key, value in summary(report).items():
        if isinstance(value, list) and value and isinstance(value[0], list):
            body = ",\n  ".join(json.dumps(item, ensure_ascii=False) for item in value)
            lines.append(f' "{key}": [\n  {body}\n ]')
        elif isinstance(value, dict) and key in ("facts", "missing"):
            body = ",\n  ".join(
                f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in value.items()
            )
            lines.append(f' "{key}": {{\n  {body}\n }}')
        else:
            lines.append(f' "{key}": {json.dumps(value, ensure_ascii=False)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> int:
    """Write or compare all goldens; 1 if any differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--write", action="store_true", help="replace the goldens by what the parser says now"
    )
    write = parser.parse_args().write
    different = 0
    for log in logs():
        path, now = golden_path(log), text(parse_path(log))
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        if now == before:
            continue
        different += 1
        sys.stdout.writelines(
            difflib.unified_diff(before.splitlines(True), now.splitlines(True), path.name, "now", n=0)
        )
        if write:
            path.write_text(now, encoding="utf-8")
    return 1 if different and not write else 0


if __name__ == "__main__":
    sys.exit(main())
