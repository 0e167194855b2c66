"""What the measuring job leaves is what the reader reads."""

from __future__ import annotations

import gzip
import json

import pytest

from scripts.lib.cell import Cell
from scripts.lib.client_load import ClientLoad
from scripts.lib.endpoint import READY, Endpoint, Failure
from scripts.lib.evidence import read_evidence
from scripts.lib.evidence_writer import write_evidence
from scripts.lib.measurement import Measurement, window
from scripts.lib.measuring_spec import MeasureSpec
from scripts.lib.record import record_from_evidence
from scripts.lib.store import CellStore, State, key_of
from scripts.lib.surroundings import Surroundings
from tests.evidence_factory import cell
from tests.lib.test_measurement import record

CELL = cell("mtp", 3)
IDENTITY = {"model": {"target": "toy", "revision": None}, "argv": ["serve"]}


@pytest.fixture
def store(tmp_path):
    return CellStore(tmp_path / "store")


@pytest.fixture
def endpoint(tmp_path):
    log = tmp_path / "server.log"
    log.write_bytes(b"started\nserving\nlater\n")
    return Endpoint(READY, "boot-1", start=1, model="toy", log=str(log), facts={"argv": ["serve"]})


def spec(store):
    return MeasureSpec(
        cell=CELL.axes,
        key=key_of(IDENTITY),
        identity=IDENTITY,
        store=str(store.root),
        scenario_file="config/scenarios/code.yaml",
        scenario_sha256="0",
        requests=2,
        warmup_requests=1,
        request_timeout_s=600,
        stall_timeout_s=120,
        token_ids=True,
        salt="salt",
    )


def measured(endpoint):
    around = Surroundings(endpoint)
    with around:
        pass
    return Measurement(
        [record("warmup"), record(), record()],
        window(100.0, 8) | {"end_s": 102.0, "wall_s": 2.0, "log_end": 16},
        metrics_before=b"a 1\n",
        metrics_after=b"a 2\n",
        client=ClientLoad(100.0, 2.0, 0.1, 0.05, 0.001, 0.002),
        traits={"temperature": 0.0},
        salt="salt/boot-1",
        surroundings=around,
    )


def test_a_measurement_is_read_as_it_was_written(store, endpoint):
    write_evidence(store, spec(store), measured(endpoint), endpoint, 99.0)
    assert store.state(CELL, key_of(IDENTITY)) is State.MEASURED
    evidence = read_evidence(store.folder(CELL, key_of(IDENTITY)))
    assert (len(evidence.warmup), len(evidence.measured)) == (1, 2)
    assert (evidence.metrics_before, evidence.metrics_after) == ("a 1\n", "a 2\n")
    manifest = evidence.manifest
    assert Cell.from_axes(manifest["cell"]) == CELL
    assert (manifest["status"], manifest["retry"], manifest["failure"]) == ("measured", False, None)
    assert manifest["scenario"] == {"temperature": 0.0}
    assert manifest["seeds"] == {"salt": "salt/boot-1"}
    assert manifest["host_state"]["absent"] is None
    assert manifest["device_watch"]["absent"]
    assert manifest["client"]["cpu_share"] == 0.05


def test_the_log_ends_where_the_window_did(store, endpoint):
    write_evidence(store, spec(store), measured(endpoint), endpoint, 99.0)
    folder = store.folder(CELL, key_of(IDENTITY))
    assert gzip.decompress((folder / "server.log.gz").read_bytes()) == b"started\nserving\n"


def test_a_failure_before_any_request_leaves_its_reason(store, endpoint):
    failure = Failure("transient", "the port was taken", "startup", retry=True)
    write_evidence(store, spec(store), Measurement.nothing(failure), endpoint, 99.0)
    folder = store.folder(CELL, key_of(IDENTITY))
    manifest = read_evidence(folder).manifest
    assert (manifest["status"], manifest["retry"]) == ("failed", True)
    assert manifest["failure"]["class"] == "transient"
    assert (manifest["host_state"], manifest["device_watch"], manifest["client"]) == (None, None, None)
    assert manifest["seeds"] == {"salt": "salt"}
    assert record_from_evidence(folder, CELL)["failure_cause"] == "the port was taken"
    json.dumps(manifest)


def test_nothing_half_written_is_left_when_writing_fails(store, endpoint):
    broken = measured(endpoint)
    broken.metrics_after = "no bytes"
    with pytest.raises(TypeError):
        write_evidence(store, spec(store), broken, endpoint, 99.0)
    assert store.state(CELL, key_of(IDENTITY)) is State.ABSENT
    assert list((store.root / ".incoming").iterdir()) == []
