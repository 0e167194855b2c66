from __future__ import annotations

import pytest

from scripts.lib.feasibility import CELL_RULES, SERVER_RULES, check_cell, check_server, parse_version
from scripts.lib.feasibility_rules import drafting_slots, prompt_tokens_bounds
from scripts.lib.parts import Drafter
from scripts.lib.scenario import Prompt, Scenario
from tests.planning import engine, hardware, model, resolved

GPU = {"max_num_seqs": 256, "max_num_batched_tokens": 2048}


def workload(max_tokens=64, text="x" * 400):
    prompts = (Prompt("p", text),)
    return Scenario("work", "", prompts, prompts, max_tokens, None, False, 0.0, 1.0, None, {}, True)


def server_finding(rule, *args, **kwargs):
    found = [finding for finding in check_server(resolved(*args, **kwargs)) if finding.rule == rule]
    assert len(found) <= 1
    return (found[0].level, found[0].message) if found else None


def cell_finding(rule, concurrency, *args, scenario=None, **kwargs):
    made = check_cell(resolved(*args, **kwargs), scenario or workload(), concurrency)
    found = [finding for finding in made if finding.rule == rule]
    return (found[0].level, found[0].message) if found else None


def machine(**limits):
    return hardware(vllm_defaults=GPU | limits)


def says(found, level, *words):
    assert found is not None
    assert found[0] == level
    for word in words:
        assert str(word) in found[1], found[1]
    return True


def test_ids_are_unique():
    ids = [rule.id for rule in (*SERVER_RULES, *CELL_RULES)]
    assert len(ids) == len(set(ids))


def test_a_plain_server_has_no_findings():
    for method, k in (("none", 0), ("mtp", 3), ("eagle", 2), ("ngram", 5), ("suffix", 8)):
        assert check_server(resolved(method, k, machine=machine())) == ()


def test_baseline_and_k():
    assert says(server_finding("baseline-has-no-k", "none", 3), "infeasible", "k 3")
    assert says(server_finding("baseline-has-no-k", "mtp", 0), "infeasible", "got 0")


def test_a_missing_drafter():
    bare = model(drafters={})
    for method in ("eagle", "eagle3", "draft_model", "dspark", "dflash"):
        assert says(
            server_finding("drafter-given", method, 3, target=bare), "infeasible", method, "target.yaml"
        )
    own = {"model": "org/own"}
    assert server_finding("drafter-given", "eagle", 3, target=bare, speculative_config=own) is None


def test_a_forbidden_drafter():
    for method in ("mtp", "ngram", "suffix"):
        found = server_finding("drafter-given", method, 3, speculative_config={"model": "org/x"})
        assert says(found, "infeasible", method, "org/x")


def test_mtp_needs_a_head():
    assert says(
        server_finding("mtp-head-present", "mtp", 1, target=model(has_mtp=False)), "infeasible", "target"
    )
    assert server_finding("mtp-head-present", "ngram", 1, target=model(has_mtp=False)) is None


@pytest.mark.parametrize(
    ("k", "n_predict", "refused"),
    [
        (3, 1, False),
        (2, 2, False),
        (1, 2, False),
        (3, 2, True),
        (4, 2, False),
        (5, 3, True),
        (3, None, False),
    ],
)
def test_k_of_mtp_is_a_multiple_of_n_predict_once_above_it(k, n_predict, refused):
    found = server_finding("mtp-k-divisible", "mtp", k, target=model(mtp_n_predict=n_predict))
    assert (found is not None) == refused
    if refused:
        assert says(found, "infeasible", f"k {k}", f"n_predict {n_predict}", k // n_predict * n_predict)


def test_length_over_the_model_s_context():
    target = model(context_length=4096)
    assert says(
        server_finding("length-within-context", "none", 0, 8192, target=target), "infeasible", 8192, 4096
    )
    assert server_finding("length-within-context", "none", 0, 4096, target=target) is None
    assert server_finding("length-within-context", "none", 0, 8192) is None
    allowed = {"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"}
    found = server_finding("length-within-context", "none", 0, 8192, target=target, environment=allowed)
    assert says(found, "warning")


def test_stochastic_rounding_needs_float16():
    flag = {"enable-mamba-cache-stochastic-rounding": True}
    rule = "stochastic-rounding-dtype"
    assert says(server_finding(rule, flags=flag), "infeasible", "float16", "not given")
    assert says(
        server_finding(rule, flags=flag | {"mamba-ssm-cache-dtype": "float32"}), "infeasible", "float32"
    )
    assert server_finding(rule, flags=flag | {"mamba-ssm-cache-dtype": "float16"}) is None
    assert server_finding(rule, flags={"mamba-ssm-cache-dtype": "float32"}) is None


def test_dspark_below_its_block_size_is_a_warning():
    target = model(drafters={"dspark": Drafter("org/d", block_size=7)})
    assert says(server_finding("dspark-block-size", "dspark", 3, target=target), "warning", "k 3", "7")
    assert server_finding("dspark-block-size", "dspark", 7, target=target) is None
    assert server_finding("dspark-block-size", "dspark", 3) is None


@pytest.mark.parametrize(
    ("method", "k", "slots"),
    [
        ("none", 0, 0),
        ("mtp", 3, 0),
        ("eagle", 3, 0),
        ("ngram", 3, 0),
        ("dspark", 3, 2),
        ("dflash", 4, 3),
        ("draft_model", 3, 1),
    ],
)
def test_slots_that_drafting_takes(method, k, slots):
    assert drafting_slots(resolved(method, k)) == slots


def test_parallel_drafting_of_a_draft_model_takes_both():
    assert drafting_slots(resolved("draft_model", 3, speculative_config={"parallel_drafting": True})) == 3


@pytest.mark.parametrize(
    ("budget", "seqs", "method", "k", "left"),
    [
        # resolved values of real logs
        (8192, 1024, "dspark", 3, 6144),
        (2048, 128, "draft_model", 3, 1920),
        (2048, 8, "dspark", 3, 2032),
        (2048, 128, "dflash", 4, 1664),
        (2048, 256, "dspark", 16, -1792),
        (2048, 1024, "dspark", 3, 0),
    ],
)
def test_scheduled_tokens(budget, seqs, method, k, left):
    box = machine(max_num_batched_tokens=budget, max_num_seqs=seqs)
    found = server_finding("scheduled-tokens", method, k, machine=box)
    assert says(found, "infeasible" if left <= 0 else "warning", f"= {left}", budget, seqs)


def test_scheduled_tokens_reads_flags_before_defaults_and_is_silent_without_numbers():
    flags = {"max-num-batched-tokens": 4096, "max-num-seqs": "16"}
    assert "= 4064" in server_finding("scheduled-tokens", "dspark", 3, machine=machine(), flags=flags)[1]
    assert server_finding("scheduled-tokens", "dspark", 3) is None
    unread = {"max-num-batched-tokens": "8k"}
    assert server_finding("scheduled-tokens", "dspark", 3, machine=machine(), flags=unread) is None


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ("0.19.1", None),
        ("0.20.0", "infeasible"),
        ("0.27.1", "infeasible"),
        ("0.28", None),
        ("0.28.0", None),
        (None, "warning"),
    ],
)
def test_a_rule_holds_for_its_versions_and_only_warns_when_unknown(version, level):
    box = machine(max_num_seqs=256)
    found = server_finding("scheduled-tokens", "dspark", 16, machine=box, build=engine(version=version))
    assert (found and found[0]) == level
    if version is None:
        assert "unknown version" in found[1]
        assert "0.20 to before 0.28" in found[1]


def test_one_request_s_step_must_fit_the_budget_from_0_28_on():
    flags = {"max-num-batched-tokens": 8}
    newer = engine(version="0.28.0")
    assert says(
        server_finding("lookahead-fits-budget", "mtp", 8, flags=flags, build=newer), "infeasible", "9"
    )
    assert server_finding("lookahead-fits-budget", "mtp", 7, flags=flags, build=newer) is None
    assert server_finding("lookahead-fits-budget", "mtp", 8, flags=flags) is None


def synthetic(k=3, **keys):
    keys = {f"synthetic_acceptance_{name}": value for name, value in keys.items()}
    keys |= {"rejection_sample_method": "synthetic"}
    return server_finding("synthetic-acceptance", "mtp", k, speculative_config=keys)


def test_synthetic_length_lies_between_one_and_k_plus_one():
    assert says(synthetic(length=6.0), "infeasible", "[1, 4]")
    assert says(synthetic(length=0.5), "infeasible")
    assert synthetic(length=4) is None
    assert synthetic(length=2.5) is None


def test_synthetic_rates_are_one_per_token_and_exclude_a_length():
    assert says(synthetic(rates=[0.8, 0.5]), "infeasible", "2 entries", "k is 3")
    assert synthetic(rates=[0.8, 0.5, 0.2]) is None
    assert says(synthetic(rates=[0.8, 0.5, 0.2], length=2.5), "infeasible", "not both")
    assert says(synthetic(), "infeasible", "needs one of")


def test_synthetic_figures_need_the_method_that_reads_them():
    keys = {"synthetic_acceptance_length": 2.5}
    found = server_finding("synthetic-acceptance", "mtp", 3, speculative_config=keys)
    assert says(found, "infeasible", "rejection_sample_method")
    old = server_finding(
        "synthetic-acceptance", "mtp", 3, speculative_config=keys, build=engine(version="0.20.0")
    )
    assert says(old, "warning", "known for vLLM 0.26 and later")


def test_a_budget_below_the_slots_given_beside_it():
    rule = "budget-below-slots"
    found = server_finding(rule, flags={"max-num-batched-tokens": 128, "max-num-seqs": 256})
    assert says(found, "infeasible", 128, 256)
    assert server_finding(rule, flags={"max-num-batched-tokens": 256, "max-num-seqs": 256}) is None
    # A default number of slots is cut to the budget instead.
    assert server_finding(rule, machine=machine(), flags={"max-num-batched-tokens": 128}) is None


@pytest.mark.parametrize(
    ("method", "choice", "keys", "words"),
    [
        ("dspark", "0", {}, ("dspark", "V2 only")),
        ("dspark", "1", {}, None),
        ("dspark", None, {}, None),
        ("ngram", "1", {}, ("ngram", "V2 does not support")),
        ("ngram_gpu", "1", {}, ("ngram_gpu",)),
        ("suffix", "true", {}, ("suffix",)),
        ("draft_model", 1, {}, ("draft_model",)),
        ("ngram", "0", {}, None),
        ("eagle", "1", {}, None),
        ("eagle", "1", {"parallel_drafting": True}, ("in parallel",)),
        ("mtp", "1", {}, None),
        ("none", "1", {}, None),
    ],
)
def test_runners_and_the_methods_they_know(method, choice, keys, words):
    environment = {} if choice is None else {"VLLM_USE_V2_MODEL_RUNNER": choice}
    k = 0 if method == "none" else 3
    build = {"environment": environment, "speculative_config": keys}
    found = server_finding("runner-supports-method", method, k, **build)
    if words is None:
        assert found is None
        return
    assert says(found, "infeasible", *words)
    newer = server_finding("runner-supports-method", method, k, **build, build=engine(version="0.30.0"))
    assert says(newer, "warning", "0.27 to before 0.28")


def test_a_cpu_has_no_model_runner_v2():
    box, environment = hardware(accelerator="cpu"), {"VLLM_USE_V2_MODEL_RUNNER": "1"}
    found = server_finding("cpu-support", "none", 0, machine=box, environment=environment)
    assert says(found, "infeasible", "Triton", "VLLM_USE_V2_MODEL_RUNNER")


def test_block_verification_where_nothing_reads_it():
    keys, rule = {"rejection_sample_method": "block"}, "block-verification"
    assert says(server_finding(rule, "ngram", 3, speculative_config=keys), "warning", "ignored")
    box = hardware(accelerator="cpu")
    assert says(server_finding(rule, "mtp", 3, speculative_config=keys, machine=box), "warning")
    assert server_finding(rule, "mtp", 3, speculative_config=keys) is None
    assert server_finding(rule, "ngram", 3) is None


def test_asynchronous_scheduling_is_not_asked_of_lookup_methods():
    flags, rule = {"async-scheduling": True}, "async-scheduling-method"
    for method in ("ngram", "suffix"):
        assert says(server_finding(rule, method, 3, flags=flags), "infeasible", method)
    for method, k in (("none", 0), ("mtp", 3), ("draft_model", 3), ("dspark", 3)):
        assert server_finding(rule, method, k, flags=flags) is None
    assert server_finding(rule, "ngram", 3) is None


@pytest.mark.parametrize(
    ("method", "ranks", "drafts", "refused"),
    [
        ("eagle", 4, 1, False),
        ("eagle", 4, 4, False),
        ("eagle", 4, 2, True),
        ("draft_model", 4, 1, True),
        ("draft_model", 4, 4, False),
        ("draft_model", None, 2, True),
        ("draft_model", None, 1, False),
    ],
)
def test_ranks_of_the_drafter(method, ranks, drafts, refused):
    flags = {} if ranks is None else {"tensor-parallel-size": ranks}
    keys = {"draft_tensor_parallel_size": drafts}
    found = server_finding("drafter-ranks", method, 3, flags=flags, speculative_config=keys)
    assert (found is not None) == refused
    if refused:
        assert says(found, "infeasible", drafts, ranks or 1)


def test_the_key_that_drafters_do_not_have():
    keys = {"tensor_parallel_size": 1}
    found = server_finding("drafter-ranks", "eagle", 3, speculative_config=keys)
    assert says(found, "infeasible", "draft_tensor_parallel_size")
    old = server_finding("drafter-ranks", "eagle", 3, speculative_config=keys, build=engine(version="0.11.0"))
    assert says(old, "warning", "0.16 and later")


@pytest.mark.parametrize(
    ("target", "own", "level"),
    [
        ("marlin", None, None),  # the command line names triton for the head
        ("marlin", "marlin", "infeasible"),
        ("marlin", "aiter", None),
        ("humming", None, None),
        ("cutlass", None, "warning"),
        ("cutlass", "triton", None),
        (None, "cutlass", "infeasible"),
        (None, None, None),
    ],
)
def test_experts_of_an_mtp_head_are_not_quantised(target, own, level):
    flags = {"moe-backend": target} if target else {}
    keys = {"moe_backend": own} if own else {}
    found = server_finding("head-moe-backend", "mtp", 3, flags=flags, speculative_config=keys)
    assert (found and found[0]) == level
    assert server_finding("head-moe-backend", "dspark", 3, flags=flags, speculative_config=keys) is None


def test_lookup_windows_and_drafter_lengths():
    keys = {"prompt_lookup_min": 5, "prompt_lookup_max": 3}
    assert says(server_finding("lookup-window", "ngram", 3, speculative_config=keys), "infeasible", 5, 3)
    assert server_finding("lookup-window", "ngram", 3, speculative_config={"prompt_lookup_min": 5}) is None
    keys = {"max_model_len": 2048}
    found = server_finding("drafter-length", "eagle", 3, 1024, speculative_config=keys)
    assert says(found, "infeasible", 2048, 1024)
    assert server_finding("drafter-length", "eagle", 3, 2048, speculative_config=keys) is None


def test_releases_without_draft_models():
    assert says(
        server_finding("draft-model-supported", "draft_model", 3, build=engine(version="0.12.0")),
        "infeasible",
    )
    assert server_finding("draft-model-supported", "draft_model", 3) is None


@pytest.mark.parametrize(
    ("method", "keys"),
    [("dspark", {}), ("ngram_gpu", {}), ("eagle", {"rejection_sample_method": "synthetic"})],
)
def test_what_a_cpu_cannot_run(method, keys):
    box = hardware(accelerator="cpu")
    build = {"machine": box, "speculative_config": keys}
    assert says(server_finding("cpu-support", method, 3, **build), "infeasible", "CPU")
    assert says(server_finding("cpu-support", method, 3, **build, build=engine(version="0.30.0")), "warning")
    assert server_finding("cpu-support", method, 3, speculative_config=keys) is None
    assert server_finding("cpu-support", "mtp", 3, machine=box) is None


def test_the_scenario_against_the_length():
    rule = "scenario-fits-length"
    assert cell_finding(rule, 1, "none", 0, 4096) is None
    assert says(cell_finding(rule, 1, "none", 0, 64), "infeasible", "max_tokens 64", "50 tokens", 64)
    assert says(cell_finding(rule, 1, "none", 0, 200), "warning", "estimated", 200)
    assert says(cell_finding(rule, 1, "none", 0, 2048, scenario=workload(2048, "x")), "infeasible", 2048)


def test_the_bounds_enclose_what_tokenizers_give():
    """English near 4 bytes a token; Japanese near 3."""
    for text, tokens in (("word " * 300, 300), ("日本" * 300, 600)):
        least, most = prompt_tokens_bounds(workload(text=text))
        assert least <= tokens <= most


def test_a_token_budget_that_holds_fewer_requests_than_asked():
    flags = {"max-num-batched-tokens": 32, "max-num-seqs": 64}
    found = cell_finding("token-budget", 64, "mtp", 2, flags=flags)
    assert says(found, "warning", "32 holds 10 of 64", "k + 1 = 3")
    assert cell_finding("token-budget", 10, "mtp", 2, flags=flags) is None
    assert says(cell_finding("token-budget", 64, "none", 0, flags=flags), "warning", "32 of 64")
    assert cell_finding("token-budget", 64, "mtp", 2) is None


def test_a_default_budget_is_cut_to_what_all_slots_can_hold():
    box = machine(max_num_batched_tokens=8192, max_num_seqs=2)
    assert says(
        cell_finding("token-budget", 100, "mtp", 2, 128, machine=box), "warning", "256 holds 85 of 100"
    )


def test_more_workers_than_slots():
    box = machine(max_num_seqs=8)
    assert says(cell_finding("concurrency-within-slots", 16, machine=box), "warning", 16, 8, "8 will queue")
    assert cell_finding("concurrency-within-slots", 8, machine=box) is None
    assert cell_finding("concurrency-within-slots", 16) is None


def test_slots_nobody_gave_are_the_machine_s_default():
    rule = "concurrency-within-slots"
    box = machine(max_num_seqs=8)
    assert says(cell_finding(rule, 16, machine=box), "warning", "vLLM's default")
    given = cell_finding(rule, 16, machine=box, flags={"max-num-seqs": 12})
    assert says(given, "warning", "max-num-seqs 12: 4 will queue")
    # A small budget cuts the default (F04: 32 tokens hold at most 32 requests).
    cut = cell_finding(rule, 64, machine=machine(), flags={"max-num-batched-tokens": 32})
    assert says(cut, "warning", "max-num-seqs 32", "32 will queue")


def test_slots_that_nobody_knows_are_a_warning_where_they_may_matter():
    assert says(cell_finding("concurrency-within-slots", 200), "warning", "not known for box")
    assert cell_finding("concurrency-within-slots", 128) is None


def test_scheduled_tokens_count_the_slots_a_small_budget_leaves():
    found = server_finding(
        "scheduled-tokens", "draft_model", 3, machine=machine(), flags={"max-num-batched-tokens": 64}
    )
    assert says(found, "infeasible", "64 - 1 slots x max-num-seqs 64 = 0")


def test_flags_say_nothing_about_external_servers_but_axes_do():
    outside = engine(launcher="external", base_url="http://x", command=())
    flags = {"max-num-seqs": 1, "enable-mamba-cache-stochastic-rounding": True}
    server = resolved("dspark", 3, 64, build=outside, flags=flags)
    assert check_server(server) == ()
    assert [finding.rule for finding in check_cell(server, workload(), 8)] == ["scenario-fits-length"]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("0.27.1", (0, 27, 1)),
        ("0.27.1+cpu", (0, 27, 1)),
        ("0.28.0rc1", (0, 28, 0)),
        ("0.9.dev3", (0, 9)),
        (None, None),
    ],
)
def test_versions(text, version):
    assert parse_version(text) == version


def test_a_config_does_not_choose_devices_behind_the_claim():
    chosen = {"CUDA_VISIBLE_DEVICES": "1"}
    assert says(server_finding("devices-given", environment=chosen), "infeasible", "of your shell")
    assert server_finding("devices-given", environment=chosen, build=engine(kind="sglang"))
    assert server_finding("devices-given", environment=chosen, machine=hardware(accelerator="cpu")) is None
    assert server_finding("devices-given") is None
