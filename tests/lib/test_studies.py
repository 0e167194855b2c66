"""What the configs of the published studies expand to, held against what the studies say they did."""

from __future__ import annotations

import pytest

from scripts.lib.sweep import Sweep
from tests.planning import study

SPARK = {
    "--moe-backend": "marlin",
    "--kv-cache-dtype": "fp8",
    "--enable-prefix-caching": "",
    "--mamba-backend": "flashinfer",
    "--mamba-cache-mode": "align",
}
PARSERS = {
    "--reasoning-parser": "nemotron_v3",
    "--tool-call-parser": "qwen3_coder",
    "--enable-auto-tool-choice": "",
}
STUDY_C = SPARK | {
    "--max-num-batched-tokens": "16384",
    "--mamba-ssm-cache-dtype": "float16",
    "--enable-mamba-cache-stochastic-rounding": "",
    "--mamba-cache-philox-rounds": "5",
}
LIGHTNING, NANO = "nemotron-3.5-lightning-nvfp4", "nemotron-3-nano-nvfp4"


def flags(argv: tuple[str, ...]) -> dict[str, str]:
    """Flags behind `vllm serve MODEL` with their values, without where it listens and what it speculates with."""
    found: dict[str, str] = {}
    for word in argv[3:]:
        if word.startswith("--"):
            name = word
            found[name] = ""
        else:
            found[name] = word
    return {
        name: value
        for name, value in found.items()
        if name not in ("--host", "--port", "--speculative-config")
    }


def cells(made: Sweep) -> list[tuple]:
    return [(c.server.model, c.server.method, c.server.k, c.scenario, c.concurrency) for c in made.cells]


@pytest.mark.parametrize("name", ["a", "b", "b-sglang", "c", "c-beside"])
def test_every_study_can_be_measured_and_has_no_rule_without_effect(name: str) -> None:
    made = study(name)
    assert made.warnings == ()
    refused = [f for cell in made.cells for f in made.findings(cell) if f.level == "infeasible"]
    assert refused == []
    assert all(made.launch(server).gate for server in made.servers)


def test_study_a_rotates_four_prompts_with_a_pool_of_one_and_of_eight() -> None:
    made = study("a")
    methods = [("none", 0), ("mtp", 3), ("dflash", 3), ("dspark", 3)]
    assert cells(made) == [(LIGHTNING, *method, "code", c) for method in methods for c in (1, 8)]
    scenario = made.scenario("code")
    assert len(scenario.prompts) == 4
    assert (scenario.max_tokens, scenario.min_tokens, scenario.ignore_eos) == (2048, None, False)


def test_study_b_forces_256_tokens_and_counts_what_two_budgets_cut_off() -> None:
    made = study("b")
    forced = [
        (LIGHTNING, method, k, "forced-256", concurrency)
        for method, k in (("none", 0), ("dspark", 3), ("dspark", 8))
        for concurrency in (1, 2, 4, 8)
    ]
    budgets = [
        (LIGHTNING, method, k, scenario, 1)
        for method, k in (("none", 0), ("dspark", 3))
        for scenario in ("reasoning-4096", "reasoning-16000")
    ]
    assert sorted(cells(made)) == sorted([*forced, *budgets, (NANO, "none", 0, "forced-256", 1)])
    asked = made.scenario("forced-256")
    assert (asked.min_tokens, asked.max_tokens, asked.ignore_eos, asked.temperature) == (256, 256, True, 0)
    small, large = made.scenario("reasoning-4096"), made.scenario("reasoning-16000")
    assert (small.max_tokens, large.max_tokens) == (4096, 16000)
    assert small.prompts == large.prompts
    assert not small.ignore_eos
    assert small.chat_template_kwargs == {"enable_thinking": True}
    assert made.config["validity"]["max_truncated_share"] == 1


def test_study_b_s_servers_have_its_share_of_memory_and_eight_slots() -> None:
    made = study("b")
    own = {"--max-model-len": "65536", "--gpu-memory-utilization": "0.85", "--max-num-seqs": "8"}
    for server in made.servers:
        parsers = PARSERS if server.model == LIGHTNING else {}
        assert flags(made.launch(server).argv) == SPARK | parsers | own


def test_study_c_measures_four_shapes_one_request_at_a_time_on_three_boots() -> None:
    made = study("c")
    shapes = {
        "chat_short": (128, 256),
        "code_generation": (512, 1024),
        "chat_long_context": (8192, 256),
        "summarization": (16384, 128),
    }
    servers = [(LIGHTNING, "none", 0), (LIGHTNING, "mtp", 3), (LIGHTNING, "dspark", 3), (NANO, "none", 0)]
    assert sorted(cells(made)) == sorted(
        (*server, shape, 1) for server in servers for shape in shapes for _ in range(3)
    )
    for name, (tokens_in, tokens_out) in shapes.items():
        shape = made.scenario(name)
        assert shape.nonce
        assert (shape.input_tokens, shape.min_tokens, shape.max_tokens) == (tokens_in, tokens_out, tokens_out)
        assert shape.ignore_eos


def test_study_c_takes_turns_so_that_a_drift_falls_on_all_its_servers() -> None:
    made = study("c")
    assert [boot.repeat for boot in made.boots] == [1] * 4 + [2] * 4 + [3] * 4
    assert len({boot.server for boot in made.boots[:4]}) == 4


def test_study_c_s_servers_run_as_published() -> None:
    made = study("c")
    own = {"--max-model-len": "1048576", "--gpu-memory-utilization": "0.8"}
    for server in made.servers:
        launch = made.launch(server)
        assert flags(launch.argv) == STUDY_C | own
        assert (launch.container.shm_size, launch.container.network) == ("16g", None)


def test_study_c_s_pair_runs_with_the_flags_of_its_single_models() -> None:
    made = study("c-beside")
    for server in made.servers:
        launch = made.launch(server)
        for argv in (launch.argv, *([launch.beside.argv] if launch.beside else [])):
            share = flags(argv)["--gpu-memory-utilization"]
            own = {"--max-model-len": "65536", "--gpu-memory-utilization": share}
            assert flags(argv) == STUDY_C | own
