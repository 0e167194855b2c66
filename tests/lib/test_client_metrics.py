"""What a record says of the client that measured it."""

from pathlib import Path

import pytest

from scripts.lib.client_metrics import client_metrics
from scripts.lib.metrics import of_subject
from scripts.lib.record import record_from_evidence
from tests.evidence_factory import CLIENT, Truth, cell, write_evidence


def client(**values):
    return {"client": CLIENT | {"cpu_s": 0.5} | values}


def test_all_figures_come_from_the_manifest():
    values, reasons = client_metrics(client())
    assert values == {
        "client_lag_p99_s": 0.001,
        "client_lag_max_s": 0.004,
        "client_cpu_s": 0.5,
        "client_cpu_share": 0.05,
    }
    assert reasons == {}


@pytest.mark.parametrize("manifest", [{}, {"client": None}])
def test_an_unwatched_client_is_absent_with_a_reason(manifest):
    values, reasons = client_metrics(manifest)
    assert values == dict.fromkeys(of_subject("client"))
    assert set(reasons) == set(values)


def test_the_figures_stand_in_the_record(tmp_path: Path):
    subject = cell()
    truth = Truth(extra=client(lag_p99_s=0.25, lag_max_s=0.3))
    record = record_from_evidence(write_evidence(tmp_path, subject, truth), subject)
    assert record["client_lag_p99_s"] == 0.25
    assert record["client_cpu_share"] == 0.05
