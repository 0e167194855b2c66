"""The columns of a cell that was measured with a second server on its device (company.py leaves them in the manifest)."""

from __future__ import annotations

from collections.abc import Mapping

NEIGHBOUR_FIELDS: dict[str, type] = {"beside": str, "beside_method": str, "beside_tps": float}
"""`beside`: the second server and its load, in words; `beside_method`: which method the cell's own server runs, whatever the
config calls it; `beside_tps`: tokens per second of the second server in the window. All None for a cell without one."""


def neighbour(manifest: Mapping[str, object]) -> dict[str, object]:
    """NEIGHBOUR_FIELDS from the manifest; beside_tps is None for a second server that was left idle."""
    told = manifest.get("beside")
    if not told:
        return dict.fromkeys(NEIGHBOUR_FIELDS)
    return {"beside": told["label"], "beside_method": told["method"], "beside_tps": told["tps"]}
