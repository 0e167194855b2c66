"""Two servers on one device: the first measured alone, beside an idle one and beside a busy one."""

import json

import pytest

from tests.processes import running_with


@pytest.fixture
def pair(project):
    other = {"description": "other", "target": "other", "context_length": 8192}
    project.write("config/models/other.yaml", other)
    beside = {"model": "other", "scenario": "short", "flags": {"max-num-seqs": 4}}
    project.save(
        method=[
            {"name": "none"},
            {"name": "beside-idle", "method": "none", "beside": beside},
            {"name": "beside-busy", "method": "none", "beside": beside | {"concurrency": 2}},
        ],
        concurrency=[2],
    )
    return project


def manifest(project, method):
    return json.loads((project.evidence(method, 0, 2) / "manifest.json").read_text())


def test_alone_beside_an_idle_and_beside_a_busy_server(pair):
    pair.run()
    assert pair.cells()["status"].to_list() == ["measured"] * 3
    assert pair.cell("none", 2)["beside"] is None
    idle, busy = pair.cell("beside-idle", 2), pair.cell("beside-busy", 2)
    assert (idle["beside"], idle["beside_tps"]) == ("other none, idle", None)
    assert busy["beside"] == "other none, short at 2"
    assert busy["beside_tps"] > 0
    told = manifest(pair, "beside-busy")["beside"]
    assert told["failed"] == 0
    assert told["server"]["model"] == "other"
    argv = told["server"]["argv"]
    assert argv[argv.index("--max-num-seqs") + 1] == "4"
    table = (pair.folder / "results/tables/beside.md").read_text()
    assert "other none, short at 2" in table
    assert len(pair.starts) == 5, "one server, then two times two"


def test_a_second_server_that_cannot_start_is_named(pair):
    pair.faults({"kind": "die_at_start", "method": "none", "max_model_len": 512})
    pair.matrix["method"][2]["beside"]["max_model_len"] = 512
    pair.save()
    pair.run(status=1)
    assert pair.cell("none", 2)["status"] == "measured"
    row = pair.cell("beside-busy", 2)
    assert row["status"] == "failed"
    assert row["failure_cause"].startswith("the server beside it: ")
    assert not running_with(pair.marker)
