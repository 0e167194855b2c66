from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys

import yaml

from scripts.lib.launch import PORT
from scripts.lib.launchers import docker_run
from scripts.lib.plan import WIDTH, render
from tests.planning import study, sweep


def pending(_):
    return "pending"


def test_every_server_and_cell_is_shown_with_its_state():
    made = sweep()
    states = dict(zip(made.cells, ["finished", "failed", *["pending"] * 4], strict=True))
    text = render(made, states.__getitem__)
    for server in made.servers:
        assert server.path in text
    assert text.rstrip().endswith("6 cells on 3 servers: 1 finished, 1 failed, 4 pending")
    lines = [line.split() for line in text.splitlines() if line.startswith("    code-short")]
    assert [(line[0], line[1]) for line in lines] == [
        (f"code-short/c{cell.concurrency}/r1", states[cell]) for cell in made.cells
    ]
    assert "5 measured requests" in text


def commands(text):
    """The commands of a plan, each as one line of shell."""
    parts = text.split("  $ ")[1:]
    return [re.split(r"\n(?!     )|\n    \S", part.replace("\\\n", " "))[0] for part in parts]


def test_container_commands_can_be_pasted_into_a_shell():
    made = study("a")
    for server, shown in zip(made.servers, commands(render(made, pending)), strict=True):
        launch = made.launch(server)
        run = docker_run(launch, 8000, dict.fromkeys(launch.environment_names, ""), cidfile="")
        assert shlex.split(shown) == list(run)
        assert shown.startswith("docker run --rm --gpus all --ipc host --network host ")


def test_a_pasted_command_gets_the_words_and_variables_of_a_run(tmp_path):
    """Seen by the shell: what follows `$ ` runs the engine as the serve job would."""
    engine = tmp_path / "engines" / "shown.yaml"
    engine.parent.mkdir()
    script = (
        "import json, os, sys; json.dump([sys.argv[1:], os.environ['A'], os.environ['B']], open('told', 'w'))"
    )
    command = [sys.executable, "-c", script, "{model}"]
    data = {"description": "x", "kind": "vllm", "launcher": "process", "command": command}
    engine.write_text(yaml.safe_dump(data | {"environment": {"A": "it's $HOME", "B": "2 3"}}))
    made = sweep(tmp_path, engine=["shown"], method=[{"name": "mtp", "k": [3]}], max_model_len=[1024])
    (shown,) = commands(render(made, pending))
    subprocess.run(["sh", "-c", shown], cwd=tmp_path, check=True)
    words, a, b = json.loads((tmp_path / "told").read_text())
    launch = made.launch(made.servers[0])
    assert words == [word.replace(PORT, "8000") for word in launch.argv[3:]]
    assert (a, b) == ("it's $HOME", "2 3")


def test_it_is_readable_at_a_hundred_columns():
    text = render(sweep(exclude=[{"method": "mpt"}]), pending)
    for shown in (text, render(study("a"), pending)):
        # One argument cannot be broken over lines.
        long = [line for line in shown.splitlines() if len(line) > WIDTH]
        assert all(line.startswith("      --speculative-config") for line in long)


def test_an_infeasible_cell_has_its_reason_with_numbers():
    text = render(sweep(max_model_len=[16384]), pending)
    assert "infeasible: max_model_len 16384 is over the 8192 tokens of context of smollm2" in text
    assert text.rstrip().endswith("6 cells on 3 servers: 6 infeasible")


def test_evidence_that_is_there_stays_finished_whatever_a_rule_says():
    text = render(sweep(max_model_len=[16384]), lambda _: "finished")
    assert text.rstrip().endswith("6 finished")


def test_a_finding_of_the_server_is_said_once_and_one_of_a_cell_with_it():
    text = render(sweep(method=[{"name": "draft_model", "k": [3]}], concurrency=[1, 16]), pending)
    assert text.count("[scheduled-tokens]") == 1
    assert text.count("[concurrency-within-slots]") == 1
    assert (
        text.index("[scheduled-tokens]")
        < text.index("code-short/c1")
        < text.index("[concurrency-within-slots]")
    )


def test_containers_secrets_by_name_and_environment_are_shown():
    text = render(study("a"), pending)
    assert "--env HF_TOKEN" in text
    assert "from your shell, where set: HF_TOKEN" in text
    assert "VLLM_CPU_KVCACHE_SPACE=1" in render(sweep(), pending)


def test_an_external_server_has_no_command():
    text = render(sweep(engine=["external"], method=[{"name": "none"}]), pending)
    assert "runs elsewhere at http://127.0.0.1:8000/v1" in text
    assert "$ " not in text


def test_warnings_come_first():
    assert render(sweep(exclude=[{"method": "mpt"}]), pending).startswith(
        "warning: config: exclude[0].method"
    )
