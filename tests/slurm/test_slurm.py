"""The Slurm profile on a real Slurm: one job per server, on the partition and GPU of its hardware."""

import threading
import time

TWO_SERVERS_EACH = {"method": [{"name": "none"}, {"name": "mtp", "k": [3]}], "concurrency": [1, 4]}


def watch(project, process, seen):
    while process.poll() is None:
        seen.append(project.jobs)
        time.sleep(0.5)


def run_watched(project, limit_s=400):
    """Run the sweep; returns what the queue looked like every half second."""
    process, seen = project.start(), []
    watcher = threading.Thread(target=watch, args=(project, process, seen))
    watcher.start()
    process.wait(limit_s)
    watcher.join()
    assert process.returncode == 0, project.console
    return seen


def test_each_server_is_one_job_on_the_partition_and_gpu_of_its_hardware(project):
    project.save(**TWO_SERVERS_EACH)
    queue = run_watched(project)
    assert project.cells()["status"].to_list() == ["measured"] * 8
    assert sorted(project.cells()["hardware"]) == ["gb200"] * 4 + ["h100"] * 4
    jobs = project.jobs.values()
    assert sorted(job["partition"] for job in jobs) == ["gb200", "gb200", "h100", "h100"]
    for job in jobs:
        name = job["partition"]
        assert job["node"] == name
        assert job["gres"] == f"gres:gpu:{name}:1"
        assert job["constraint"] == {"h100": "hopper", "gb200": "blackwell"}[name]
        assert (job["cpus"], job["account"]) == ("4", "lab")
        # Start-up 20 s and two cells at 900 s, in whole minutes; the server's memory and the cells' own.
        assert job["limit"] == "31:00"
        assert job["memory"] == "8100M"
    running = [[job["partition"] for job in jobs.values() if job["state"] == "RUNNING"] for jobs in queue]
    assert max(names.count("h100") for names in running) == 1
    assert max(names.count("gb200") for names in running) == 1
    assert max(map(len, running)) == 2, "the two partitions never worked at the same time"
    assert len(project.starts) == 4, "what servers and cells say on their nodes is on the console too"
    assert "Nothing to be done" in project.run()
    assert len(project.jobs) == 4, "a finished sweep submits nothing"


def test_a_partition_that_is_not_there_ends_the_run_before_anything_starts(project):
    hardware = {"description": "a typing error", "slurm": {"partition": "h1oo", "gres": "gpu:h100"}}
    project.write("config/hardware/h100.yaml", hardware)
    project.save(hardware=["h100"])
    output = project.run(status=1)
    assert (
        "Slurm on h100: invalid partition specified: h1oo. Compare the key slurm of config/hardware/h100.yaml"
        in output
    )
    assert not project.jobs


def test_what_could_never_start_ends_the_run_before_anything_is_sent(project):
    project.save(hardware=["h100"], **TWO_SERVERS_EACH)
    project.cluster.command("scontrol", "update", "PartitionName=h100", "MaxTime=30")
    output = project.run(status=1)
    project.cluster.command("scontrol", "update", "PartitionName=h100", "MaxTime=INFINITE")
    assert "Slurm on h100: partition h100 runs jobs for 30 minutes at most" in output
    project.save(overrides=[{"when": {"hardware": "h100"}, "flags": {"tensor-parallel-size": 2}}])
    output = project.run(status=1)
    assert "Requested node configuration is not available" in output
    assert "lower the server's parallel sizes" in output
    project.write("config/hardware/h100.yaml", {"description": "no gres", "slurm": {"partition": "h100"}})
    assert "config/hardware/h100.yaml: slurm.gres is missing" in project.run(status=1)
    assert not project.jobs


def test_jobs_of_a_killed_run_are_not_joined_by_others(project):
    sleep = ["--comment=rule_group", f"--chdir={project.folder}", "--partition=h100", "--wrap=sleep 60"]
    job = project.cluster.command("sbatch", "--parsable", *sleep).strip()
    output = project.run(status=1)
    assert f"jobs of an earlier run in this folder are still in the queue: {job}." in output
    project.cluster.command("scancel", job)
