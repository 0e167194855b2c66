"""What a cluster does to jobs: each ends in a run that measures what is missing, in the same run or the next, and nothing twice."""

import signal

from tests.processes import wait_for

# The second cell hangs, for longer than a test takes, until the server is started without the fault.
STUCK = {
    "method": [{"name": "mtp", "k": [3]}],
    "concurrency": [1, 4],
    "measurement": {
        "min_requests": 2,
        "requests_per_worker": 1,
        "min_warmup_requests": 1,
        "stall_timeout_s": 500,
    },
}


def start(project, *hardware):
    """Start a sweep and return when the first of its server's two cells is in the store, on each hardware."""
    project.faults({"kind": "hang_mid_stream", "concurrency": 2, "contains": "LRU"})
    project.save(hardware=list(hardware), **STUCK)
    process = project.start()
    wait_for(lambda: all(map(project.first_cell, hardware)) or process.poll() is not None, 200, "first cells")
    assert process.poll() is None, project.console
    project.faults()
    return process


def running(project, hardware):
    (job,) = [
        job for job, row in project.jobs.items() if row["partition"] == hardware and row["state"] == "RUNNING"
    ]
    return job


def test_a_cancelled_job_a_lost_node_and_a_job_over_its_time(project):
    names = ("h100", "gb200", "h200")
    process = start(project, *names)
    kept = list(map(project.first_cell, names))
    cancelled, lost, late = (running(project, name) for name in names)
    cluster = project.cluster
    cluster.command("scancel", cancelled)
    cluster.command("scontrol", "update", f"JobId={late}", "EndTime=now+5")  # later than the controller's now
    cluster.crash_node("gb200")
    wait_for(lambda: cluster.node_states()["gb200"].startswith("down"), 60, "Slurm to miss the node")
    cluster.start_node("gb200")
    assert process.wait(300) == 0, project.console
    assert kept == list(map(project.first_cell, names)), "measured again"
    assert project.cells()["status"].to_list() == ["measured"] * 6
    states = {name: [] for name in names}
    for row in project.jobs.values():
        states[row["partition"]].append(row["state"])
    # Slurm itself starts a job again whose node is gone; the others are sent a second time.
    assert {name: sorted(found) for name, found in states.items()} == {
        "h100": ["CANCELLED", "COMPLETED"],
        "gb200": ["COMPLETED"],
        "h200": ["COMPLETED", "TIMEOUT"],
    }
    assert project.jobs[lost]["state"] == "COMPLETED"
    for job, state in ((cancelled, "CANCELLED"), (late, "TIMEOUT")):
        assert f"a server's job on the cluster, {job}, did not end well: {state}" in project.console


def test_a_killed_slurmd_whose_job_goes_on_meanwhile(project):
    """Slurm gives the node up and starts the job again, beside the one that it has lost sight of until then."""
    process = start(project, "h100")
    kept = project.first_cell("h100")
    cluster = project.cluster
    cluster.kill("slurmd h100", signal.SIGKILL)
    wait_for(lambda: cluster.node_states()["h100"].startswith("down"), 60, "Slurm to miss the node")
    cluster.start_node("h100")
    assert process.wait(300) == 0, project.console
    assert kept == project.first_cell("h100"), "measured again"
    assert project.cells()["status"].to_list() == ["measured"] * 2
    assert [row["state"] for row in project.jobs.values()] == ["COMPLETED"]
    assert len(project.starts) == 2, "the console follows the job that was started again"
