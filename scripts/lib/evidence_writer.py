"""Writing the evidence of one cell; evidence.py reads it and says what each file is."""

from __future__ import annotations

import gzip
import json
import platform
import time
from dataclasses import asdict
from pathlib import Path

from scripts.lib import device
from scripts.lib.cell import Cell
from scripts.lib.checkpoint import packaged_speculator
from scripts.lib.endpoint import Endpoint
from scripts.lib.evidence import DEVICE, FORMAT, LOG, METRICS_AFTER, METRICS_BEFORE, REQUESTS
from scripts.lib.measurement import Measurement
from scripts.lib.measuring_spec import MeasureSpec
from scripts.lib.provenance import versions, workflow_commit
from scripts.lib.store import MANIFEST, CellStore


def write_evidence(
    store: CellStore, spec: MeasureSpec, outcome: Measurement, endpoint: Endpoint, started_at: float
) -> None:
    """Put what was measured into the store, whole or not at all. Raises StoreError when it cannot be written."""
    with store.writing(Cell.from_axes(spec.cell), spec.key) as folder:
        manifest = _manifest(spec, outcome, endpoint, started_at)
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True), encoding="utf-8")
        _write_lines(folder / REQUESTS, [asdict(record) for record in outcome.records])
        if outcome.surroundings:
            _write_lines(folder / DEVICE, outcome.surroundings.samples)
        for name, text in ((METRICS_BEFORE, outcome.metrics_before), (METRICS_AFTER, outcome.metrics_after)):
            if text is not None:
                (folder / name).write_bytes(text)
        if endpoint.log and Path(endpoint.log).exists():
            log = Path(endpoint.log).read_bytes()[: outcome.window["log_end"]]
            (folder / LOG).write_bytes(gzip.compress(log, mtime=0))


def _write_lines(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def _manifest(
    spec: MeasureSpec, outcome: Measurement, endpoint: Endpoint, started_at: float
) -> dict[str, object]:
    surroundings = outcome.surroundings
    return {
        "format": FORMAT,
        "cell": spec.cell,
        "key": spec.key,
        "identity": spec.identity,
        "status": "failed" if outcome.failure else "measured",
        "retry": bool(outcome.failure and outcome.failure.retry) or outcome.lossy,
        "failure": outcome.failure and outcome.failure.to_json(),
        "window": outcome.window,
        "client": outcome.client and asdict(outcome.client),
        "host_state": surroundings and surroundings.host_state,
        "device_watch": surroundings and surroundings.device_watch,
        "scenario": outcome.traits,
        "beside": outcome.beside and outcome.beside | {"server": endpoint.beside},
        "requests": spec.requests,
        "warmup_requests": spec.warmup_requests,
        "prompt_fit": outcome.fit and outcome.fit.to_json(),
        "checkpoint": packaged_speculator(spec.identity["model"], endpoint.facts.get("environment", {})),
        "server": endpoint.facts,
        "boot": {
            "id": endpoint.boot_id,
            "start": endpoint.start,
            "model": endpoint.model,
            "log": endpoint.log,
        },
        "host": platform.node(),
        "device": device.describe(),
        "versions": versions(),
        "seeds": {"salt": outcome.salt or spec.salt},
        "workflow_commit": workflow_commit(),
        "started_at": started_at,
        "finished_at": time.time(),
    }
