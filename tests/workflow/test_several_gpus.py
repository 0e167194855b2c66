"""One sweep on a machine with two GPUs: two servers at once, each alone on its own; one that needs both has both."""

import json
import os
import signal
import sys
from itertools import combinations

import pytest

from tests.processes import running_with, wait_for
from tests.workflow.project import FAKE_SERVER
from tests.workflow.test_device import cards  # noqa: F401 - a fixture

AT_ONCE = ("--cores", "2", "--resources", "device=2")
NONE, MTP, BOTH = (
    {"name": "none"},
    {"name": "mtp", "k": [3]},
    {"name": "none-tp2", "method": "none", "flags": {"tensor-parallel-size": 2}},
)


@pytest.fixture
def lives(project, cards):  # noqa: F811
    """Call it after a run: (first second, last second, indices of the GPUs) of every server, in the order of their starts.

    A server says so itself in a file: when it starts and, as long as it lives, every tenth of a second."""
    cards("NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3")
    project.engine(
        command=[sys.executable, "-S", "-E", str(project.folder / "engine.py"), "serve", "{model}"]
    )
    (project.folder / "engine.py").write_text(f"""
import os, runpy, sys, threading, time
def live():
    with open(f"{project.folder}/life-{{os.getpid()}}", "w") as file:
        while True:
            print(time.time(), os.environ.get("CUDA_VISIBLE_DEVICES", "0,1"), file=file, flush=True)
            time.sleep(0.1)
threading.Thread(target=live, daemon=True).start()
sys.argv[0] = "{FAKE_SERVER}"
runpy.run_path("{FAKE_SERVER}", run_name="__main__")
""")

    def read():
        signs = [
            [line.split() for line in path.read_text().splitlines()] for path in project.folder.glob("life-*")
        ]
        return sorted((float(life[0][0]), float(life[-1][0]), set(life[0][1].split(","))) for life in signs)

    return read


def overlap(one, other):
    return min(one[1], other[1]) - max(one[0], other[0])


def test_servers_share_a_machine_and_never_a_gpu(project, lives):
    project.truth["startup_s"] = 2.0
    # More cells than Snakemake has threads for: those that wait must not keep the others from their server.
    project.save(method=[NONE, BOTH, MTP], concurrency=[1, 2, 3, 4])
    console = project.run(*AT_ONCE)
    servers = lives()
    assert sorted(len(gpus) for _, _, gpus in servers) == [1, 1, 2]
    assert overlap(servers[0], servers[1]) > 2.0
    for one, other in combinations(servers, 2):
        assert overlap(one, other) < 0 or not one[2] & other[2], "two servers on one GPU"
    assert project.cells()["status"].to_list() == ["measured"] * 12
    assert "waiting for the device" not in console
    assert {line.split("  ")[1] for line in project.starts} == {"boot 1/3", "boot 2/3", "boot 3/3"}
    measured = [label.split(" len1024 c") for label in project.measured]
    for server in ("none", "none-tp2", "mtp k3"):
        assert [c for name, c in measured if name == server] == list("1234"), (
            "in order, since all had a thread"
        )
    for row in project.cells().iter_rows(named=True):
        manifest = json.loads((project.folder / row["evidence"] / "manifest.json").read_text())
        uuids = [gpu["uuid"] for gpu in manifest["server"]["gpus"]]
        assert uuids == (["GPU-00", "GPU-11"] if row["method"] == "none-tp2" else uuids[:1])


def test_what_waits_for_a_gpu_is_not_starting_up(project, lives, cards):  # noqa: F811
    cards("NVIDIA H100 80GB HBM3")
    project.truth |= {"startup_s": 1.0, "step_s": 0.03}
    project.save(method=[NONE, MTP], concurrency=[1], startup={"limit_s": 4, "stall_s": 1})
    console = project.run(*AT_ONCE)
    first, second = lives()
    assert second[0] - first[0] > 6.0, "longer than a server may take to start"
    assert overlap(first, second) < 0
    assert "boot 2/2" in console
    assert "waiting for the device" in console
    assert project.cells()["status"].to_list() == ["measured"] * 2


def test_the_end_of_a_run_ends_all_its_servers(project, lives):
    project.truth["step_s"] = 0.5
    project.save(method=[NONE, MTP])
    process = project.start(*AT_ONCE)
    wait_for(lambda: project.console.count("warming up") == 2, 30, "two cells at once")
    os.kill(process.pid, signal.SIGTERM)
    process.wait(30)
    wait_for(lambda: not running_with(project.marker), 20, "the end of all processes")
    assert len(lives()) == 2
