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


def client_notes(manifest: Mapping[str, object]) -> list[str]:
    """A remark when the client was too slow to be trusted: beyond the limit of the config it was measured with."""
    client = manifest.get("client") or {}
    lag_s, limit_ms = client.get("lag_p99_s"), client.get("max_lag_ms")
    if lag_s is None or limit_ms is None or 1000 * lag_s <= limit_ms:
        return []
    return [
        f"the client could have bent the result: it noticed answers up to {1000 * lag_s:.0f} ms late (99th percentile; "
        f"measurement.max_client_lag_ms {limit_ms:g}, worst {1000 * client['lag_max_s']:.0f} ms, "
        f"{client['cpu_share']:.2f} cores of its own): leave it a processor core"
    ]
