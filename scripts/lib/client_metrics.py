"""The metrics that say what the client itself did to a cell's figures, from the manifest's `client` (client_load.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scripts.lib import formulas
from scripts.lib.evidence import Request
from scripts.lib.metrics import of_subject

_UNKNOWN = "measured by a version that did not watch the client"


def client_metrics(
    manifest: Mapping[str, object], measured: Sequence[Request]
) -> tuple[dict[str, object], dict[str, str]]:
    """Metrics of the subject client, and for each that is None the reason."""
    client = manifest.get("client") or {}
    values = {name: client.get(name.removeprefix("client_")) for name in of_subject("client")}
    reasons = {name: _UNKNOWN for name, value in values.items() if value is None}
    duration_s = formulas.mean([request.elapsed_s for request in measured if request.completed])
    if values["client_lag_p99_s"] is not None:
        values["client_lag_share"] = values["client_lag_p99_s"] / duration_s if duration_s else None
        reasons["client_lag_share"] = "no completed request that took time"
        if values["client_lag_share"] is not None:
            del reasons["client_lag_share"]
    return values, reasons
