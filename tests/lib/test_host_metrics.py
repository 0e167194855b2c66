"""Others' load as metrics, each absent value with its reason."""

from __future__ import annotations

import pytest

from scripts.lib.host_metrics import host_metrics
from scripts.lib.metrics import of_subject

STATE = {
    "absent": None,
    "wall_s": 10.0,
    "cpus": 4,
    "load_1m": {"before": 1.0, "after": 2.5},
    "foreign_cpu_share": 0.15,
    "steal_s": 2.0,
}
WATCH = {"absent": None, "foreign_processes": [{"pid": 7, "memory_mib": 2048, "utilization": 30.0}]}


def test_all_is_known():
    values, reasons = host_metrics({"host_state": STATE, "device_watch": WATCH})
    assert reasons == {}
    assert values == {
        "foreign_cpu_share": 0.15,
        "steal_share": 0.05,
        "host_load_1m": 2.5,
        "foreign_gpu_memory_gib": 2.0,
        "foreign_gpu_utilization": 30.0,
    }


def test_nobody_else_on_the_gpu_is_a_zero():
    values, _ = host_metrics({"host_state": STATE, "device_watch": WATCH | {"foreign_processes": []}})
    assert (values["foreign_gpu_memory_gib"], values["foreign_gpu_utilization"]) == (0, 0)


@pytest.mark.parametrize(
    ("watch", "why"),
    [
        ({"absent": "no NVIDIA driver answers"}, "no NVIDIA driver answers"),
        (WATCH | {"foreign_processes": None}, "a container"),
        (WATCH | {"foreign_processes": [{"pid": 7, "memory_mib": None, "utilization": None}]}, "by process"),
        (None, "a version that did not watch"),
    ],
)
def test_others_on_the_gpu_are_unknown_with_a_reason(watch, why):
    values, reasons = host_metrics({"host_state": STATE, "device_watch": watch})
    assert set(reasons) == {"foreign_gpu_memory_gib", "foreign_gpu_utilization"}
    assert all(why in reason for reason in reasons.values())
    assert values["foreign_cpu_share"] == 0.15


def test_the_load_beside_a_server_of_somebody_else_is_unknown():
    state = STATE | {"absent": "the server was not started here", "foreign_cpu_share": None}
    values, reasons = host_metrics({"host_state": state, "device_watch": WATCH})
    assert set(reasons) == {"foreign_cpu_share"}
    assert "not started here" in reasons["foreign_cpu_share"]
    assert values["host_load_1m"] == 2.5


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        ({}, "did not watch"),
        ({"host_state": {"absent": "cannot be read: PermissionError"}}, "PermissionError"),
    ],
)
def test_old_or_unreadable_evidence_has_reasons_for_all(manifest, why):
    values, reasons = host_metrics(manifest)
    assert set(values) == set(reasons) == set(of_subject("host"))
    assert set(values.values()) == {None}
    assert why in reasons["foreign_cpu_share"]
