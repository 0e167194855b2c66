"""Where a record comes from: the server, the machine and the evidence behind it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from scripts.lib.evidence import Evidence

PROVENANCE_FIELDS = (
    "acceptance_source",
    "engine_version",
    "image_digest",
    "command",
    "host",
    "device",
    "gpu_uuids",
    "boot",
    "workflow_commit",
    "started_at",
    "finished_at",
    "key",
    "scenario_sha256",
    "evidence",
    "log",
)


def origin(evidence: Evidence) -> dict[str, object]:
    """The record's fields of PROVENANCE_FIELDS that evidence alone tells; sources of single metrics are added elsewhere."""
    manifest, server = evidence.manifest, evidence.manifest["server"]
    return {
        "image_digest": server.get("image_digest"),
        "command": shlex.join(server["argv"]) if server.get("argv") else None,
        "host": manifest["host"],
        "device": _device(manifest["device"], server.get("gpus") or ()),
        "gpu_uuids": ", ".join(gpu["uuid"] for gpu in server.get("gpus") or ()) or None,
        "boot": manifest["boot"]["id"],
        "workflow_commit": manifest["workflow_commit"],
        "started_at": _utc(manifest["started_at"]),
        "finished_at": _utc(manifest["finished_at"]),
        "key": manifest["key"],
        "scenario_sha256": (manifest.get("identity") or {}).get("scenario"),
        "evidence": str(evidence.folder),
        "log": str(evidence.log) if evidence.log else None,
    }


def _device(device: Mapping[str, object], claimed: Sequence[Mapping[str, str]]) -> str | None:
    """What the server ran on, in words: the GPUs it had, those of the machine where that is not known, else the CPU."""
    gpus = [str(gpu.get("name")) for gpu in claimed or device.get("gpus") or ()]
    return ", ".join(gpus) or device.get("cpu")


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
