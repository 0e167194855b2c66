from __future__ import annotations

import pytest

from scripts.lib.config import ConfigError
from scripts.lib.feasibility import check_cell, check_server
from scripts.lib.settings import check_settings
from tests.lib.test_feasibility import workload
from tests.planning import engine, model, resolved

SGLANG = engine(kind="sglang", version="0.5.16")


def findings(method="ngram", k=3, build=SGLANG, **parts):
    found = check_server(resolved(method, k, build=build, **parts))
    return {finding.rule: (finding.level, finding.message) for finding in found}


@pytest.mark.parametrize("method", ["ngram", "mtp", "eagle", "dspark", "dflash", "draft_model"])
def test_what_sglang_has_is_let_through(method):
    assert findings(method) == {}


@pytest.mark.parametrize("method", ["suffix", "ngram_gpu"])
def test_what_sglang_has_not_is_refused(method):
    level, message = findings(method)["sglang-method"]
    assert level == "infeasible"
    assert f"SGLang has no {method}" in message


def test_dspark_came_after_0_5_15():
    assert (
        findings("dspark", build=engine(kind="sglang", version="0.5.15"))["sglang-dspark"][0] == "infeasible"
    )
    level, message = findings("dspark", build=engine(kind="sglang", version=None))["sglang-dspark"]
    assert level == "warning"
    assert "known for SGLang" in message
    assert "sglang-dspark" not in findings("dflash", build=engine(kind="sglang", version="0.5.15"))


def test_acceptance_cannot_be_made_up():
    keys = {"rejection_sample_method": "synthetic", "synthetic_acceptance_length": 2.0}
    assert findings(speculative_config=keys)["sglang-synthetic"][0] == "infeasible"
    assert "sglang-synthetic" not in findings(speculative_config={"quantization": "fp8"})


def test_keys_that_have_no_flag_are_told():
    level, message = findings(speculative_config={"prompt_lookup_max": 4})["sglang-keys"]
    assert level == "warning"
    assert "prompt_lookup_max, which is not passed" in message
    assert "sglang-keys" not in findings("eagle", speculative_config={"quantization": "fp8"})


def test_a_chain_is_as_long_as_its_steps():
    assert findings("eagle", flags={"speculative-num-steps": 2})["sglang-chain-length"][0] == "infeasible"
    assert findings("eagle", flags={"speculative-num-steps": 3}) == {}
    tree = {"speculative-num-steps": 2, "speculative-eagle-topk": 4}
    assert findings("eagle", flags=tree) == {}


def test_rules_of_both_engines():
    assert findings("mtp", target=model(has_mtp=False))["mtp-head-present"][0] == "infeasible"
    assert findings("eagle", target=model(drafters={}))["drafter-given"][0] == "infeasible"


def test_rules_of_one_engine_do_not_touch_the_other():
    assert "scheduled-tokens" not in findings(
        "dspark", flags={"max-num-batched-tokens": 10, "max-num-seqs": 10}
    )
    vllm = check_server(resolved("suffix"))
    assert not [finding for finding in vllm if finding.rule.startswith("sglang")]


def test_more_requests_than_slots_queue():
    def slots(concurrency, **flags):
        found = check_cell(resolved("none", 0, build=SGLANG, flags=flags), workload(), concurrency)
        return [finding.message for finding in found if finding.rule == "sglang-slots"]

    assert slots(48) == []
    assert "max-running-requests 48 (what the workflow passes" in slots(64)[0]
    assert slots(9, **{"max-running-requests": 8}) == [
        "concurrency 9 is over max-running-requests 8: 1 will queue"
    ]


@pytest.mark.parametrize(
    "flag",
    ["speculative-algorithm", "speculative-num-draft-tokens", "speculative-dspark-block-size", "model-path"],
)
def test_flags_that_the_axes_own(flag):
    with pytest.raises(ConfigError, match=f"flags.{flag}: is set by"):
        check_settings({"flags": {flag: 1}}, "config: ")
