"""profiles/cluster-generic and profiles/kubernetes as they are, run by their real plugin; qsub and kubectl are stand-ins."""

import json
import os
import sys

import pytest

from tests.workflow.project import ROOT

pytest.importorskip("snakemake_executor_plugin_cluster_generic")

# Runs the script that it is given in the background, prints an id and keeps what it was asked.
QSUB = """#!{python}
import json, pathlib, subprocess, sys
folder = pathlib.Path({folder!r})
(folder / "asked.json").write_text(json.dumps(sys.argv[1:]))
subprocess.Popen(["sh", sys.argv[-1]], start_new_session=True, stdin=subprocess.DEVNULL,
                 stdout=(folder / "job.log").open("w"), stderr=subprocess.STDOUT)
print("17.scheduler")
"""
# The same for a Job: `get` tells what became of it.
KUBECTL = """#!{python}
import json, os, pathlib, subprocess, sys
folder = pathlib.Path({folder!r})
if sys.argv[1] == "create":
    job = json.load(sys.stdin)
    (folder / "asked.json").write_text(json.dumps(job))
    container = job["spec"]["template"]["spec"]["containers"][0]
    run = "%s; echo $? > %s/status" % (" ".join(container["command"]), folder)
    subprocess.Popen(["sh", "-c", run], cwd=container["workingDir"], start_new_session=True, stdin=subprocess.DEVNULL,
                     stdout=(folder / "job.log").open("w"), stderr=subprocess.STDOUT)
    print("job.batch/specdec-x7")
else:
    assert sys.argv[1:4] == ["get", "job", "specdec-x7"], sys.argv
    ended = (folder / "status").exists() and (folder / "status").read_text().strip()
    print(json.dumps({{"status": {{"succeeded": 1}} if ended == "0" else {{"failed": 1}} if ended else {{"active": 1}}}}))
"""


@pytest.fixture
def cluster(project, monkeypatch):
    """Runs the smallest sweep by a profile with this stand-in on PATH; returns what was asked of it."""

    def run(profile, name, text):
        folder = project.folder / "bin"
        folder.mkdir()
        (folder / name).write_text(text.format(python=sys.executable, folder=str(folder)))
        (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        hardware = {
            "description": "a node",
            "nvml_name": None,
            "slurm": {"partition": "short", "cpus": 3, "mem_mb": 900},
            "kubernetes": {"node_selector": "gpu.product=H100"},
        }
        project.write("config/hardware/sim.yaml", hardware)
        project.save(method=[{"name": "mtp", "k": [3]}], concurrency=[1])
        project.run(
            "--profile",
            str(ROOT / "profiles" / profile),
            "--seconds-between-status-checks",
            "1",
            "--latency-wait",
            "10",
        )
        assert project.cells()["status"].to_list() == ["measured"]
        return json.loads((folder / "asked.json").read_text())

    return run


def test_a_scheduler_of_your_own(cluster):
    *asked, script = cluster("cluster-generic", "qsub", QSUB)
    assert asked == [
        "-V", "-j", "oe", "-q", "short", "-l", "select=1:ncpus=3:mem=950mb:ngpus=1", "-l", "walltime=16:00",
    ]  # fmt: skip
    assert "/.snakemake/" in script


def test_kubernetes(cluster):
    job = cluster("kubernetes", "kubectl", KUBECTL)
    pod = job["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"gpu.product": "H100"}
    assert pod["containers"][0]["resources"]["limits"] == {"memory": "950M", "nvidia.com/gpu": 1}
    assert job["spec"]["activeDeadlineSeconds"] == 16 * 60
