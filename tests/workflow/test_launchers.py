"""Launchers other than a plain process: docker by a stand-in executable on PATH, and a server that somebody else runs."""

import json
import os
import sys

import pytest

from tests.fake_server.running import serving
from tests.workflow.project import FAKE_SERVER

# Does what `docker run` does as far as the workflow can see: writes the id, runs the image's program under the given variables,
# passes signals on, and outlives nothing. Its container (the fake server) is a session of its own, as a real one would be.
DOCKER = """#!{python}
import json, os, signal, subprocess, sys
arguments = sys.argv[1:]
with open({calls!r}, "a") as file:
    file.write(json.dumps(arguments) + "\\n")
if arguments[0] == "run":
    def values(name): return [arguments[i + 1] for i, part in enumerate(arguments) if part == name]
    environment = dict(os.environ)
    for item in values("--env"):
        name, given, value = item.partition("=")
        if given: environment[name] = value
    image = arguments.index("example/vllm:v1")
    command = [{python!r}, "-S", "-E", {server!r}, *arguments[image + 1:]]
    server = subprocess.Popen(command, env=environment, start_new_session=True)
    with open(values("--cidfile")[0], "w") as file: file.write("c0ffee")
    with open({pid!r}, "w") as file: file.write(str(server.pid))
    signal.signal(signal.SIGTERM, lambda *_: server.terminate())
    sys.exit(server.wait())
if arguments[0] == "rm":
    try: os.kill(int(open({pid!r}).read()), signal.SIGKILL)
    except ProcessLookupError: pass
if arguments[0] == "inspect": print("sha256:1234")
if arguments[:2] == ["image", "inspect"]: print("example/vllm@sha256:abcd")
"""


@pytest.fixture
def docker(project, monkeypatch):
    folder = project.folder / "bin"
    folder.mkdir()
    calls = project.folder / "calls"
    text = DOCKER.format(
        python=sys.executable, calls=str(calls), server=str(FAKE_SERVER), pid=str(project.folder / "pid")
    )
    (folder / "docker").write_text(text)
    (folder / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("HF_TOKEN", "hf_not_to_be_seen")
    monkeypatch.setenv("HF_HOME", str(project.folder / "hub"))
    project.engine(
        launcher="docker",
        command=["vllm", "serve", "{model}"],
        container={
            "image": "example/vllm:v1",
            "gpus": "all",
            "ipc": "host",
            "network": "host",
            "mounts": ["{hf_home}:/cache"],
        },
        environment_names=["FAKE_SERVER_FILE", "HF_TOKEN"],
    )
    project.save(method=[{"name": "mtp", "k": [3]}], concurrency=[1])
    return lambda: [json.loads(line) for line in calls.read_text().splitlines()]


def test_docker_argv_digest_and_removal(project, docker):
    project.run()
    calls = docker()
    (run,) = [call for call in calls if call[0] == "run"]
    cidfile, port = run[run.index("--cidfile") + 1], run[-1]
    assert run == [
        "run", "--rm", "--cidfile", cidfile, "--gpus", "all", "--ipc", "host", "--network", "host",
        "--volume", f"{project.folder}/hub:/cache", "--env", "VLLM_LOG_STATS_INTERVAL=0.2", "--env", "FAKE_SERVER_FILE", "--env", "HF_TOKEN",
        "--entrypoint", "vllm", "example/vllm:v1", "serve", "toy", "--max-model-len", "1024",
        "--speculative-config", '{"method":"mtp","num_speculative_tokens":3}', "--host", "127.0.0.1", "--port", port,
    ]  # fmt: skip
    assert (project.folder / "hub").is_dir(), "docker would make it root's"
    assert ["rm", "--force", "--volumes", "c0ffee"] in calls
    manifest = json.loads((project.evidence("mtp", 3, 1) / "manifest.json").read_text())
    assert manifest["server"]["image_id"] == "sha256:1234"
    assert manifest["server"]["image_digest"] == "example/vllm@sha256:abcd"
    assert not os.path.exists(cidfile)


def test_a_secret_is_in_no_file_and_no_output(project, docker):
    project.run()
    for path in project.folder.rglob("*"):
        if path.is_file():
            assert b"hf_not_to_be_seen" not in path.read_bytes(), path


def test_the_container_goes_when_serve_is_killed(project, docker):
    from tests.workflow.test_faults import everything_gone, processes, run_until

    project.truth |= {"step_s": 0.1}
    project.save()
    process = run_until(project, "warming up")
    for pid in processes(project, "scripts.serve"):
        os.kill(pid, 9)
    process.wait(60)
    everything_gone(project)
    assert ["rm", "--force", "--volumes", "c0ffee"] in docker()


# `pull` writes a file; `exec` runs the image's program in its own place with what the prefix lets in, as apptainer does.
APPTAINER = """#!{python}
import json, os, sys
arguments = sys.argv[1:]
with open({calls!r}, "a") as file:
    file.write(json.dumps(arguments) + "\\n")
if arguments[0] == "pull":
    open(arguments[2], "w").write("layers")
if arguments[0] == "exec":
    image = next(i for i, part in enumerate(arguments) if part.endswith(".sif"))
    inside = {{k[len("APPTAINERENV_"):]: v for k, v in os.environ.items() if k.startswith("APPTAINERENV_")}}
    command = [{python!r}, "-S", "-E", {server!r}, *arguments[image + 2:]]
    os.execve(command[0], command, inside | {{"MARKER": os.environ["MARKER"]}})
"""


@pytest.fixture
def apptainer(project, monkeypatch):
    folder, calls = project.folder / "bin", project.folder / "calls"
    folder.mkdir()
    text = APPTAINER.format(python=sys.executable, calls=str(calls), server=str(FAKE_SERVER))
    (folder / "apptainer").write_text(text)
    (folder / "apptainer").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("HF_TOKEN", "hf_not_to_be_seen")
    monkeypatch.setenv("HF_HOME", str(project.folder / "hub"))
    project.engine(
        launcher="apptainer",
        command=["vllm", "serve", "{model}"],
        container={"image": "docker://example/vllm:v1", "gpus": "all", "mounts": ["{hf_home}:/cache"]},
        environment_names=["FAKE_SERVER_FILE", "HF_TOKEN"],
    )
    project.save(method=[{"name": "mtp", "k": [3]}], concurrency=[1])
    return lambda: [json.loads(line) for line in calls.read_text().splitlines()]


def test_apptainer_pulls_once_runs_and_leaves_nothing(project, apptainer):
    project.run()
    project.save(concurrency=[1, 2])
    project.run()
    calls = apptainer()
    assert [call[0] for call in calls] == ["pull", "exec", "exec"]
    run = calls[1]
    assert run == [
        "exec", "--cleanenv", "--writable-tmpfs", "--nv", "--bind", f"{project.folder}/hub:/cache", "resources/images/fake/image.sif",
        "vllm", "serve", "toy", "--max-model-len", "1024",
        "--speculative-config", '{"method":"mtp","num_speculative_tokens":3}', "--host", "127.0.0.1", "--port", run[-1],
    ]  # fmt: skip
    assert project.cells()["status"].to_list() == ["measured"] * 2
    assert (project.folder / "hub").is_dir(), "apptainer does not mount what is not there"
    assert project.cell("mtp", 1)["image_digest"].startswith("sha256:")
    for path in project.folder.rglob("*"):
        if path.is_file():
            assert b"hf_not_to_be_seen" not in path.read_bytes(), path


def test_an_external_server_is_measured_and_left_alone(project, tmp_path_factory):
    config = '{"method": "mtp", "num_speculative_tokens": 3}'
    folder = tmp_path_factory.mktemp("external")
    with serving(folder, {"acceptance": [0.8, 0.5, 0.25]}, "toy", "--speculative-config", config) as server:
        project.write(
            "config/engines/fake.yaml",
            {
                "description": "somebody else's", "kind": "vllm", "launcher": "external", "version": "0.27.1",
                "base_url": f"http://127.0.0.1:{server.port}/v1",
            },
        )  # fmt: skip
        project.save(method=[{"name": "mtp", "k": [3]}], concurrency=[1, 2])
        project.run()
        assert project.cells()["status"].to_list() == ["measured"] * 2
        assert project.cell("mtp", 1)["acceptance_length"] == pytest.approx(2.55, abs=0.2)
        assert project.cell("mtp", 1)["kv_cache_tokens"] is None, "there is no log to read it from"
        server.get("/health")  # still there


def test_an_external_server_that_is_not_there(project):
    project.write(
        "config/engines/fake.yaml",
        {
            "description": "gone", "kind": "vllm", "launcher": "external", "version": "0.27.1",
            "base_url": "http://127.0.0.1:9/v1",
        },
    )  # fmt: skip
    project.save(method=[{"name": "mtp", "k": [3]}], concurrency=[1], startup={"limit_s": 2, "stall_s": 1})
    project.run(status=1)
    row = project.cell("mtp", 1)
    assert row["failure_phase"] == "startup"
    assert "/health did not answer" in row["failure_cause"]
