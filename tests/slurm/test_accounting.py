"""The Slurm profile where accounting is enforced; every other test here is without any."""

import pytest

from tests.slurm.accounting import ACCOUNT, AccountingCluster, missing
from tests.slurm.cluster import Node

ONE_CELL = {"hardware": ["h100"], "method": [{"name": "none"}], "concurrency": [1]}


@pytest.fixture
def cluster(tmp_path_factory):
    reason = missing()
    if reason:
        pytest.skip(reason)
    with AccountingCluster(tmp_path_factory.mktemp("accounting"), (Node("h100", "hopper"),)) as made:
        yield made


def test_jobs_run_under_the_account_of_their_hardware_and_no_other(project):
    project.save(**ONE_CELL)
    nobody = {"partition": "h100", "gres": "gpu:h100", "account": "nobody"}
    project.write("config/hardware/h100.yaml", {"description": "one node", "slurm": nobody})
    output = project.run(status=1)
    assert f"config/hardware/h100.yaml: slurm.account: 'nobody' is none of your accounts ({ACCOUNT}" in output
    assert not project.jobs
    project.hardware()
    project.run("--slurm-status-command", "sacct")
    assert project.cells()["status"].to_list() == ["measured"]
    listed = project.cluster.command("sacct", "-X", "--noheader", "--parsable2", "--format=Account,State")
    assert listed.split() == [f"{ACCOUNT}|COMPLETED"]
