"""Planning of two servers on one device."""

from __future__ import annotations

import pytest

from scripts.lib.config import ConfigError
from scripts.lib.launch import DeviceRequest, Launch
from scripts.lib.plan import render
from tests.planning import study, sweep

BESIDE = {
    "model": "nemotron-3-nano-nvfp4",
    "scenario": "chat_short",
    "flags": {"gpu-memory-utilization": 0.35},
}
FIRST = {"gpu-memory-utilization": 0.45}


def pair(beside=None, flags=FIRST, **changes):
    methods = [
        {"name": "none"},
        {"name": "with-nano", "method": "none", "flags": flags, "beside": BESIDE | (beside or {})},
    ]
    matrix = {"hardware": ["dgx-spark"], "engine": ["vllm-0.27.1"], "model": ["nemotron-3.5-lightning-nvfp4"]}
    return sweep(
        **matrix
        | {"method": methods, "scenario": ["code"], "concurrency": [1], "max_model_len": [65536]}
        | changes
    )


def server(made, method="with-nano"):
    return next(server for server in made.servers if server.method == method)


def refusals(made):
    return [f.message for f in made.server_findings(server(made)) if f.level == "infeasible"]


def test_the_second_server_is_a_server_of_the_sweep_with_its_own_settings_last():
    made = pair(overrides=[{"when": {"model": "nemotron-3-nano-nvfp4"}, "flags": {"max-num-seqs": 7}}])
    launch = made.launch(server(made))
    assert Launch.from_json(launch.to_json()) == launch
    argv = launch.beside.argv
    assert argv[2] == "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4"
    for flag, value in (
        ("--max-num-seqs", "7"),
        ("--gpu-memory-utilization", "0.35"),
        ("--max-model-len", "65536"),
    ):
        assert argv[argv.index(flag) + 1] == value
    assert launch.device == DeviceRequest("dgx-spark", 1, "GB10", True, 0.8)
    assert refusals(made) == []
    assert made.launch(server(made, "none")).beside is None


def test_a_cell_s_identity_has_the_second_server_and_its_load():
    def identity(**beside):
        made = pair(beside)
        return made.identity(next(cell for cell in made.cells if cell.server.method == "with-nano"))

    plain = identity()
    assert plain["beside"]["concurrency"] == 0
    assert "scenario" not in plain["beside"], "an idle server has none"
    assert identity(scenario="code") == plain
    assert identity(concurrency=2) != plain
    assert identity(concurrency=2, scenario="code") != identity(concurrency=2)
    assert identity(flags={"gpu-memory-utilization": 0.3}) != plain
    made = pair()
    alone = next(cell for cell in made.cells if cell.server.method == "none")
    assert "beside" not in made.identity(alone)


@pytest.mark.parametrize(
    ("beside", "flags", "words"),
    [
        ({"flags": {"gpu-memory-utilization": 0.5}}, FIRST, "0.45 + 0.5 are over 0.91"),
        (
            {"method": "mtp", "k": 3},
            FIRST,
            "beside: nemotron-3-nano-nvfp4 has no multi-token-prediction head",
        ),
    ],
)
def test_what_cannot_be_together_is_refused(beside, flags, words):
    assert any(words in message for message in refusals(pair(beside, flags)))


def test_on_a_device_with_memory_of_its_own_both_shares_must_be_given():
    made = pair({"flags": {}}, hardware=["h200"])
    assert any("gpu-memory-utilization is not given" in message for message in refusals(made))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": "no-such"}, r"beside.model"),
        ({"scenario": "no-such"}, "no-such"),
        ({"engine": "external"}, "external is a server that others run"),
        ({"k": 3}, r"method\[1\].beside.k: 3 for none"),
        ({"method": "mtp"}, r"method\[1\].beside.k: 0 for mtp"),
        ({"flags": {"port": 1}}, r"method\[1\].beside.flags.port: is set by"),
        ({"colour": 1}, "colour"),
    ],
)
def test_mistakes_name_their_place(change, words):
    with pytest.raises(ConfigError, match=words):
        pair(change)


def test_a_method_with_a_neighbour_has_a_name_of_its_own():
    with pytest.raises(ConfigError, match="needs a name of its own"):
        pair(method=[{"name": "none", "beside": BESIDE}])


def test_study_c_s_pair_is_both_ways_round():
    made = study("c-beside")
    pairs = {(server.model, server.method): made.companion(server) for server in made.servers}
    assert len(pairs) == 6
    assert sum(companion is None for companion in pairs.values()) == 2
    for (model, _), companion in pairs.items():
        assert companion is None or companion.server.model != model
    assert not any(f.level == "infeasible" for cell in made.cells for f in made.findings(cell))


def test_the_plan_shows_both_commands():
    text = render(pair({"concurrency": 2}), lambda cell: "pending")
    assert "and beside it nemotron-3-nano-nvfp4 none, chat_short at 2:" in text
    assert text.count("vllm/vllm-openai:v0.27.1") == 3
