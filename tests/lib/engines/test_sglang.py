from __future__ import annotations

import shlex

import pytest

from scripts.lib.config import REPOSITORY
from scripts.lib.engines.sglang import argv, environment
from scripts.lib.launch import PORT, Container
from tests.lib.engines.test_vllm import flags_of
from tests.planning import engine, model, resolved, study

SGLANG = engine(
    kind="sglang", version="0.5.16", command=("python3", "-m", "sglang.launch_server", "--model-path", "{model}")
)  # fmt: skip


def words(method="none", k=0, **parts):
    return list(argv(resolved(method, k, build=SGLANG, **parts)))


def speculative(built):
    listed = flags_of(built[3:-4])
    return {flag: values for flag, values in listed.items() if flag.startswith("--speculative")}


def test_the_whole_line_of_a_baseline():
    assert words(flags={"mem-fraction-static": 0.85, "enable-metrics": True}) == [
        "python3", "-m", "sglang.launch_server", "--model-path", "org/target", "--context-length", "4096",
        "--enable-metrics", "--max-running-requests", "48", "--mem-fraction-static", "0.85",
        "--host", "127.0.0.1", "--port", PORT,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "knobs"),
    [
        ("ngram", "--speculative-algorithm NGRAM --speculative-num-draft-tokens 6"),
        (
            "mtp",
            "--speculative-algorithm EAGLE --speculative-draft-model-path org/target --speculative-eagle-topk 1 "
            "--speculative-num-draft-tokens 6 --speculative-num-steps 5",
        ),
        (
            "eagle",
            "--speculative-algorithm EAGLE --speculative-draft-model-path org/eagle --speculative-eagle-topk 1 "
            "--speculative-num-draft-tokens 6 --speculative-num-steps 5",
        ),
        (
            "draft_model",
            "--speculative-algorithm STANDALONE --speculative-draft-model-path org/draft_model --speculative-eagle-topk 1 "
            "--speculative-num-draft-tokens 6 --speculative-num-steps 5",
        ),
        (
            "dspark",
            "--speculative-algorithm DSPARK --speculative-draft-model-path org/dspark --speculative-dspark-block-size 5",
        ),
        (
            "dflash",
            "--speculative-algorithm DFLASH --speculative-draft-model-path org/dflash --speculative-dflash-block-size 6",
        ),
    ],
)
def test_k_5_in_the_knobs_of_each_method(method, knobs):
    assert speculative(words(method, 5)) == flags_of(shlex.split(knobs))


def test_slots_are_given_to_every_method_and_can_be_set():
    for method, k in (("none", 0), ("ngram", 3)):
        assert flags_of(words(method, k)[3:-4])["--max-running-requests"] == ["48"]
        given = words(method, k, flags={"max-running-requests": 8})
        assert flags_of(given[3:-4])["--max-running-requests"] == ["8"]


def test_keys_of_the_drafter_that_sglang_has_flags_for():
    keys = {"quantization": "fp8", "moe_backend": "triton", "prompt_lookup_max": 4}
    built = speculative(words("eagle", 1, speculative_config=keys))
    assert built["--speculative-draft-model-quantization"] == ["fp8"]
    assert built["--speculative-moe-runner-backend"] == ["triton"]
    assert not any("lookup" in word for word in words("eagle", 1, speculative_config=keys))


def test_a_tree_of_drafts_is_set_by_flags():
    built = speculative(words("eagle", 8, flags={"speculative-eagle-topk": 4, "speculative-num-steps": 3}))
    assert built["--speculative-num-draft-tokens"] == ["9"]
    assert built["--speculative-num-steps"] == ["3"]
    assert built["--speculative-eagle-topk"] == ["4"]


def test_dspark_has_the_variable_it_needs():
    assert environment(resolved("dspark", build=SGLANG)) == {"SGLANG_RAGGED_VERIFY_MODE": "static"}
    own = resolved("dspark", build=SGLANG, environment={"SGLANG_RAGGED_VERIFY_MODE": "other"})
    assert environment(own) == {"SGLANG_RAGGED_VERIFY_MODE": "other"}
    assert environment(resolved("dflash", build=SGLANG)) == {}


def test_the_head_of_a_pinned_target_is_of_the_same_revision():
    built = speculative(words("mtp", 3, target=model(revision="abc")))
    assert built["--speculative-draft-model-revision"] == ["abc"]
    folder = speculative(words("mtp", 3, target=model(target="/models/own", revision="abc")))
    assert "--speculative-draft-model-revision" not in folder, "a folder has no revisions"


def test_revisions_and_a_bridged_container_as_for_vllm():
    assert "--revision" in words(target=model(revision="abc"))
    bridged = engine(kind="sglang", launcher="docker", container=Container("image", port=8123))
    assert argv(resolved("none", 0, build=bridged))[-4:] == ("--host", "0.0.0.0", "--port", "8123")


def test_study_b_line_for_line():
    lines = (REPOSITORY / "tests/data/studies/b-sglang.txt").read_text().splitlines()
    published = [shlex.split(line) for line in lines]
    sweep = study("b-sglang")
    launches = [sweep.launch(server) for server in sweep.servers]
    assert len(published) == len(launches)
    for expected, launch in zip(published, launches, strict=True):
        built = shlex.split(launch.command_line(port=8000))
        assert built[:3] == expected[:3]
        own = {
            "--host": ["127.0.0.1"],
            "--port": ["8000"],
            "--enable-metrics": [],
            "--decode-log-interval": ["10"],
        }
        assert flags_of(built[3:]) == flags_of(expected[3:]) | own
