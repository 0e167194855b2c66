"""The metrics that say what the client itself did to a cell's figures, from the manifest's `client` (client_load.py)."""

from __future__ import annotations

from collections.abc import Mapping

from scripts.lib.metrics import of_subject

_UNKNOWN = "measured by a version that did not watch the client"


def client_metrics(manifest: Mapping[str, object]) -> tuple[dict[str, object], dict[str, str]]:
    """Metrics of the subject client, and for each that is None the reason."""
    client = manifest.get("client") or {}
    values = {name: client.get(name.removeprefix("client_")) for name in of_subject("client")}
    return values, {name: _UNKNOWN for name, value in values.items() if value is None}
