import os
import subprocess
import threading
import time

import pytest

from scripts.lib.endpoint import (
    FAILED,
    READY,
    STARTING,
    STOPPED,
    Endpoint,
    Failure,
    ServerLost,
    await_settled,
    read_endpoint,
)

FAILURE = Failure("transient", "the port was busy", "startup", retry=True, root_line="OSError", exit_status=1)


def test_round_trip(tmp_path):
    endpoint = Endpoint(FAILED, "b", failure=FAILURE, facts={"argv": ["x"]}).of_this_process()
    endpoint.write(tmp_path / "endpoint.json")
    assert Endpoint.read(tmp_path / "endpoint.json") == endpoint
    assert [path.name for path in tmp_path.iterdir()] == ["endpoint.json"]


def test_waits_for_ready(tmp_path):
    path = tmp_path / "endpoint.json"
    Endpoint(STARTING, "b").of_this_process().write(path)
    threading.Timer(0.3, lambda: Endpoint(READY, "b").of_this_process().write(path)).start()
    assert await_settled(path).state == READY


def test_a_failed_server_is_an_answer(tmp_path):
    path = tmp_path / "endpoint.json"
    Endpoint(FAILED, "b", failure=FAILURE).of_this_process().write(path)
    assert await_settled(path).failure == FAILURE


@pytest.mark.parametrize("how", ["stopped", "dead", "unsigned", "gone"])
def test_a_serve_job_that_ends_is_noticed_at_once(tmp_path, how):
    path = tmp_path / "endpoint.json"
    if how == "dead":
        process = subprocess.Popen(["sleep", "60"])
        from scripts.lib.processes import start_ticks

        Endpoint(READY, "b", supervisor_pid=process.pid, supervisor_ticks=start_ticks(process.pid)).write(
            path
        )
        process.kill()
        process.wait()
    elif how != "gone":
        endpoint = Endpoint(STOPPED if how == "stopped" else READY, "b", supervisor_pid=os.getpid())
        (endpoint.of_this_process() if how == "stopped" else endpoint).write(path)
    began = time.monotonic()
    with pytest.raises(ServerLost):
        await_settled(path)
    assert time.monotonic() - began < 2


def test_reading_what_is_gone(tmp_path):
    with pytest.raises(ServerLost, match="was stopped"):
        read_endpoint(tmp_path / "endpoint.json")


def test_the_cells_of_a_boot_meet_in_a_folder_of_their_own(tmp_path):
    path = tmp_path / "endpoint.json"
    assert Endpoint(READY, "one").meeting(path) != Endpoint(READY, "two").meeting(path)
