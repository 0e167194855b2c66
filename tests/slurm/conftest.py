from __future__ import annotations

import contextlib
import os
import signal

import pytest

from tests.processes import running_with
from tests.slurm.cluster import Cluster, Node, missing
from tests.slurm.project import SlurmProject


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/slurm/" in str(item.path):
            item.add_marker(pytest.mark.slurm)
            item.add_marker(pytest.mark.workflow)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """Three nodes, each with one GPU in a partition of its own. Skips where no Slurm can be started."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    nodes = (Node("h100", "hopper"), Node("gb200", "blackwell"), Node("h200", "hopper"))
    with Cluster(tmp_path_factory.mktemp("slurm"), nodes) as cluster:
        yield cluster


@pytest.fixture
def project(tmp_path, cluster):
    """A fresh project on the cluster, whose queue is empty at both ends of the test."""
    made = SlurmProject(tmp_path, cluster)
    yield made
    for job in cluster.jobs("pending", "running"):
        cluster.command("scancel", job, check=False)
    left = running_with(made.marker)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert not left, "processes of the project were still running"
