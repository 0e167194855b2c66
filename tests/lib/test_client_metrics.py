"""What a record says of the client that measured it."""

from pathlib import Path

import pytest

from scripts.lib.client_metrics import client_metrics, client_notes
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
def test_an_unwatched_client_is_absent_with_a_reason_and_suspected_of_nothing(manifest):
    values, reasons = client_metrics(manifest)
    assert values == dict.fromkeys(of_subject("client"))
    assert set(reasons) == set(values)
    assert client_notes(manifest) == []


@pytest.mark.parametrize(("lag_ms", "noted"), [(9.0, False), (10.0, False), (11.0, True)])
def test_a_note_beyond_the_limit_of_the_config(lag_ms, noted):
    notes = client_notes(client(lag_p99_s=lag_ms / 1000, lag_max_s=0.02))
    assert bool(notes) == noted
    if noted:
        assert "the client could have bent the result" in notes[0]
        assert "up to 11 ms late" in notes[0]
        assert "max_client_lag_ms 10" in notes[0]


def test_the_note_and_the_figures_stand_in_the_record(tmp_path: Path):
    subject = cell()
    truth = Truth(extra=client(lag_p99_s=0.25, lag_max_s=0.3))
    record = record_from_evidence(write_evidence(tmp_path, subject, truth), subject)
    assert record["client_lag_p99_s"] == 0.25
    assert record["client_cpu_share"] == 0.05
    assert any("the client could have bent the result" in note for note in record["notes"])
