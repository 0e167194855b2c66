from __future__ import annotations

import os
import signal

import pytest

from tests.processes import running_with
from tests.workflow.project import Project


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/workflow/" in str(item.path):
            item.add_marker(pytest.mark.workflow)


@pytest.fixture
def project(tmp_path):
    """A fresh project; whatever of it still runs at the end of the test is a failure, and is killed."""
    made = Project(tmp_path)
    yield made
    left = running_with(made.marker)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left, "processes of the project were still running"
