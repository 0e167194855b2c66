"""What a manifest says was asked for."""

from __future__ import annotations

import json

import pytest

from scripts.lib.asked import asked_of, parse_flags
from tests.evidence_factory import cell

SPECULATIVE = '{"method":"eagle","model":"org/head","num_speculative_tokens":3}'
ARGV = [
    *(
        "python",
        "-m",
        "vllm.entrypoints.openai.api_server",
        "--model",
        "models/toy",
        "--max-model-len",
        "1024",
    ),
    *("--enforce-eager", "--max-num-seqs", "8", "--speculative-config", SPECULATIVE, "--port", "{port}"),
]


def asked(argv: list[str], method: str = "none", k: int = 0, **manifest: object):
    return asked_of(cell(method, k), {"server": {}, "identity": {"argv": argv}} | manifest)


def test_a_name_of_the_config_is_resolved_to_its_method() -> None:
    found = asked(ARGV, "eagle-wide", 3)
    assert (found.method, found.k, found.max_model_len) == ("eagle", 3, 1024)
    assert found.speculative["model"] == "org/head"
    assert (found.model, found.launched) == ("models/toy", True)
    assert found.flags["enforce-eager"] is True
    assert found.flags["max-num-seqs"] == "8"


def test_a_baseline_by_any_name_is_none() -> None:
    assert asked(ARGV[:7], "none-eager").method == "none"


def test_of_a_server_that_runs_elsewhere_only_the_axes_are_asked() -> None:
    found = asked_of(cell("mtp", 3), {"server": {"base_url": "http://x/v1"}, "identity": {"argv": []}})
    assert (found.method, found.model, found.launched) == ("mtp", None, False)
    assert asked([], "my-own", 3).method is None


def test_the_engine_s_command_is_read_inside_a_container() -> None:
    started = ["docker", "run", "--gpus", "all", "--entrypoint", "vllm", "image", "serve", "org/toy"]
    found = asked(["vllm", "serve", "org/toy"], server={"argv": started, "environment": {"A": "1"}})
    assert found.model == "org/toy"
    assert "gpus" not in found.flags
    assert found.environment == {"A": "1"}


def test_the_command_that_ran_stands_in_for_an_identity_without_one() -> None:
    assert asked_of(cell(), {"server": {"argv": ["vllm", "serve", "m"]}}).model == "m"


def test_the_checkpoint_s_own_settings_come_from_the_manifest() -> None:
    assert asked(ARGV, checkpoint={"speculators_config": {}}).checkpoint == {"speculators_config": {}}


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        ("--a 1 --b", {"a": "1", "b": True}),
        ("--a=1 --no-b", {"a": "1", "b": False}),
        ("--max_num_seqs 8", {"max-num-seqs": "8"}),
        ("--sizes 1 2 4 --b", {"sizes": "1 2 4", "b": True}),
        ("--max-model-len -1 --b", {"max-model-len": "-1", "b": True}),
        ("-tp 4 -q fp8", {"tensor-parallel-size": "4", "quantization": "fp8"}),
        ("--a 1 --a 2", {"a": "2"}),
        ("--b --no-b", {"b": False}),
        ("vllm serve model", {}),
    ],
)
def test_flags(words: str, flags: dict) -> None:
    assert parse_flags(words.split()) == flags


@pytest.mark.parametrize("text", ["", "{", "[1]", "3", json.dumps({"method": 7})])
def test_a_speculative_config_that_is_none_leaves_the_axes(text: str) -> None:
    found = asked(["vllm", "serve", "m", "--speculative-config", text], "mtp", 3)
    assert (found.method, found.k) == ("mtp", 3)
