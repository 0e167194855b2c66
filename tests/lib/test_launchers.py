import os

import pytest

from scripts.lib.launch import Container, Launch
from scripts.lib.launchers import command

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


def test_external_starts_nothing():
    with pytest.raises(ValueError, match="starts no server"):
        command(Launch("vllm", "external"), 1, {}, "", "")


@pytest.mark.parametrize(
    "launch", [PROCESS, docker(mounts=("a:b",), options=("--x",)), Launch("vllm", "external")]
)
def test_a_launch_survives_json(launch):
    assert Launch.from_json(launch.to_json()) == launch
