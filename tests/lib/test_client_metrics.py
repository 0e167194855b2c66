"""What a record says of the client that measured it."""

from pathlib import Path

import pytest

from scripts.lib.client_metrics import client_metrics
from scripts.lib.metrics import of_subject
from scripts.lib.record import record_from_evidence
from tests import request_factory
from tests.evidence_factory import CLIENT, Truth, cell, write_evidence


def client(**values):
    return {"client": CLIENT | {"cpu_s": 0.5} | values}


def request(start_s, end_s, finish_reason="length"):
    return request_factory.request(start_s=start_s, end_s=end_s, finish_reason=finish_reason)


def test_all_figures_come_from_the_manifest_and_the_requests():
    # Requests of 0.15 and 0.05 s take 0.1 s on average; one that was cut short does not count.
    requests = [request(0, 0.15), request(1, 1.05), request(2, 9, finish_reason=None)]
    values, reasons = client_metrics(client(), requests)
    assert values == {
        "client_lag_p99_s": 0.001,
        "client_lag_max_s": 0.004,
        "client_lag_share": pytest.approx(0.01),
        "client_cpu_s": 0.5,
        "client_cpu_share": 0.05,
    }
    assert reasons == {}


@pytest.mark.parametrize("manifest", [{}, {"client": None}])
def test_an_unwatched_client_is_absent_with_a_reason(manifest):
    values, reasons = client_metrics(manifest, [request(0, 1)])
    assert values == dict.fromkeys(of_subject("client"))
    assert set(reasons) == set(values)


@pytest.mark.parametrize("requests", [[], [request(0, 1, finish_reason=None)], [request(1, 1)]])
def test_without_a_request_that_took_time_there_is_no_share_of_one(requests):
    values, reasons = client_metrics(client(), requests)
    assert [name for name, value in values.items() if value is None] == ["client_lag_share"] == list(reasons)


def test_the_figures_stand_in_the_record(tmp_path: Path):
    subject = cell()
    truth = Truth(extra=client(lag_p99_s=0.25, lag_max_s=0.3))
    record = record_from_evidence(write_evidence(tmp_path, subject, truth), subject)
    assert record["client_lag_p99_s"] == 0.25
    assert record["client_lag_share"] == pytest.approx(0.25 / truth.elapsed_s)
    assert record["client_cpu_share"] == 0.05
