import os

import pytest

from scripts.lib.launch import Container, Launch
from scripts.lib.launchers import command, typed

PROCESS = Launch(
    "vllm", "process", ("vllm", "serve", "m o del", "--port", "{port}"), {"VLLM_X": "1"}, ("HF_TOKEN",)
)


def docker(**changes):
    container = Container(**{"image": "vllm/vllm-openai:v0.27.1"} | changes)
    argv = ("vllm", "serve", "org/m", "--host", "127.0.0.1", "--port", "{port}")
    return Launch("vllm", "docker", argv, {"B": "2 3", "A": "1"}, ("HF_TOKEN", "UNSET"), container)


def test_process_argv_and_environment():
    built = command(PROCESS, 4321, {"HF_TOKEN": "secret", "PATH": "/bin"}, "/s/cid", "/repo")
    assert built.argv == ("vllm", "serve", "m o del", "--port", "4321")
    assert built.environment == {"HF_TOKEN": "secret", "PATH": "/bin", "VLLM_X": "1"}
    assert built.cidfile is None


@pytest.mark.parametrize(
    ("before", "after"), [("/repo", None), ("/repo:/mine", "/mine"), ("/mine:/repo", "/mine"), ("", None)]
)
def test_an_engine_does_not_see_this_project(before, after):
    built = command(PROCESS, 1, {"PYTHONPATH": before}, "", "/repo")
    assert built.environment.get("PYTHONPATH") == after


def test_engine_settings_of_the_shell_do_not_reach_a_server_unless_named():
    shell = {"VLLM_ATTENTION_BACKEND": "X", "SGLANG_Y": "1", "VLLM_CACHE_ROOT": "/c", "OMP_NUM_THREADS": "2"}
    launch = Launch("vllm", "process", ("vllm",), {"VLLM_X": "1"}, ("VLLM_CACHE_ROOT",))
    assert command(launch, 1, shell, "", "/repo").environment == {
        "VLLM_CACHE_ROOT": "/c",
        "OMP_NUM_THREADS": "2",
        "VLLM_X": "1",
    }


def test_docker_on_the_host_network_word_for_word():
    launch = docker(
        gpus="all", ipc="host", network="host", shm_size="16g", mounts=("~/.cache/hf:/root/.cache/hf",)
    )
    built = command(launch, 4321, {"HF_TOKEN": "secret", "HOME": "/home/u"}, "/s/cid", "/repo")
    assert list(built.argv) == [
        "docker", "run", "--rm", "--cidfile", "/s/cid",
        "--gpus", "all", "--ipc", "host", "--shm-size", "16g", "--network", "host",
        "--volume", f"{os.path.expanduser('~')}/.cache/hf:/root/.cache/hf",
        "--env", "A=1", "--env", "B=2 3", "--env", "HF_TOKEN",
        "--entrypoint", "vllm", "vllm/vllm-openai:v0.27.1",
        "serve", "org/m", "--host", "127.0.0.1", "--port", "4321",
    ]  # fmt: skip
    assert not any("secret" in part for part in built.argv)
    assert built.cidfile == "/s/cid"


def test_docker_on_a_bridge_publishes_on_loopback_only():
    argv = command(docker(port=9000), 4321, {}, "/s/cid", "/repo").argv
    assert argv[argv.index("--publish") :][:2] == ("--publish", "127.0.0.1:4321:9000")
    assert argv[-2:] == ("--port", "9000")


def test_docker_gets_the_devices_that_are_the_server_s():
    argv = command(docker(gpus="all"), 1, {}, "/s/cid", "/repo", "0,2").argv
    assert argv[argv.index("--gpus") + 1] == '"device=0,2"'
    argv = command(docker(gpus="device=3"), 1, {}, "/s/cid", "/repo").argv
    assert argv[argv.index("--gpus") + 1] == "device=3"
    assert "--gpus" not in command(docker(), 1, {}, "/s/cid", "/repo", "0").argv


def test_a_process_sees_the_devices_that_are_the_server_s():
    seen = command(PROCESS, 1, {"CUDA_VISIBLE_DEVICES": "0,1"}, "", "/repo", "1").environment
    assert (seen["CUDA_VISIBLE_DEVICES"], seen["CUDA_DEVICE_ORDER"]) == ("1", "PCI_BUS_ID")
    assert (
        command(PROCESS, 1, {"CUDA_VISIBLE_DEVICES": "0,1"}, "", "/repo").environment["CUDA_VISIBLE_DEVICES"]
        == "0,1"
    )


def test_working_offline_is_told_to_a_container():
    argv = command(docker(), 1, {"HF_HUB_OFFLINE": "1"}, "/s/cid", "/repo").argv
    assert argv[argv.index("HF_HUB_OFFLINE") - 1] == "--env"
    assert "HF_HUB_OFFLINE" not in command(docker(), 1, {}, "/s/cid", "/repo").argv


@pytest.mark.parametrize(
    ("shell", "folder"),
    [({"HF_HOME": "/shared/hf"}, "/shared/hf"), ({}, f"{os.path.expanduser('~')}/.cache/huggingface")],
)
def test_containers_have_the_cache_that_the_shell_names(shell, folder):
    argv = command(docker(mounts=("{hf_home}:/hf:ro",)), 1, shell, "/s/cid", "/repo").argv
    assert argv[argv.index("--volume") + 1] == f"{folder}:/hf:ro"
    argv = command(apptainer(mounts=("{hf_home}:/hf",)), 1, shell, "", "/repo").argv
    assert argv[argv.index("--bind") + 1] == f"{folder}:/hf"


def apptainer(**changes):
    container = Container(**{"image": "docker://vllm/vllm-openai:v0.27.1", "gpus": "all"} | changes)
    return Launch(
        "vllm", "apptainer", ("vllm", "serve", "org/m", "--port", "{port}"), {"A": "1,2"}, ("HF_TOKEN",), container,
        "resources/images/e/image.sif",
    )  # fmt: skip


def test_apptainer_word_for_word():
    built = command(
        apptainer(mounts=("~/.cache/hf:/hf",), options=("--pid",)), 4321, {"HF_TOKEN": "secret"}, "", "/repo"
    )
    assert list(built.argv) == [
        "apptainer", "exec", "--cleanenv", "--writable-tmpfs", "--nv",
        "--bind", f"{os.path.expanduser('~')}/.cache/hf:/hf", "--pid",
        "resources/images/e/image.sif", "vllm", "serve", "org/m", "--port", "4321",
    ]  # fmt: skip
    assert built.cidfile is None
    assert "--nv" not in command(apptainer(gpus=None), 1, {}, "", "/repo").argv


def test_the_environment_inside_apptainer_is_given_by_name_and_whole():
    shell = {
        "PATH": "/bin", "HF_TOKEN": "secret", "HF_HUB_OFFLINE": "1", "VLLM_X": "shell", "CUDA_VISIBLE_DEVICES": "3",
        "APPTAINERENV_B": "sneaks in", "APPTAINER_BINDPATH": "/x", "APPTAINER_CACHEDIR": "/cache",
    }  # fmt: skip
    built = command(apptainer(), 1, shell, "", "/repo")
    inside = {
        k.removeprefix("APPTAINERENV_"): v
        for k, v in built.environment.items()
        if k.startswith("APPTAINERENV_")
    }
    assert inside == {
        "A": "1,2", "HF_TOKEN": "secret", "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "3", "PYTHONNOUSERSITE": "1",
    }  # fmt: skip
    assert "APPTAINER_BINDPATH" not in built.environment
    assert built.environment["APPTAINER_CACHEDIR"] == "/cache"
    assert not any("secret" in part for part in built.argv)
    chosen = command(apptainer(), 1, shell, "", "/repo", "2").environment
    assert chosen["APPTAINERENV_CUDA_VISIBLE_DEVICES"] == "2"


def test_external_starts_nothing():
    with pytest.raises(ValueError, match="starts no server"):
        command(Launch("vllm", "external"), 1, {}, "", "")


@pytest.mark.parametrize(
    "launch",
    [
        PROCESS,
        docker(mounts=("a:b",), options=("--x",)),
        apptainer(),
        Launch("vllm", "external"),
        Launch("vllm", "process", ("a",), beside=docker()),
    ],
)
def test_a_launch_survives_json(launch):
    assert Launch.from_json(launch.to_json()) == launch


def test_what_somebody_would_type_for_apptainer():
    variables, words = typed(apptainer())
    assert variables == {"APPTAINERENV_A": "1,2", "APPTAINERENV_PYTHONNOUSERSITE": "1"}
    assert words[:2] == ("apptainer", "exec")
