"""What the server resolved against what the row says: silence for healthy logs, a mismatch for every other kind."""

from __future__ import annotations

import gzip
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from scripts.lib.asked import Asked
from scripts.lib.logs import LogReport, parse_chunks, parse_path
from scripts.lib.logs.prometheus import difference
from scripts.lib.server_config import CONFIG_FIELDS, server_config
from scripts.lib.server_notes import server_notes
from scripts.lib.truth import compare, same_checkpoint, unconfirmed
from tests.lib.logs.helpers import parse, sglang, vllm

LOGS = Path(__file__).parents[1] / "data" / "logs"
SMOL = {"dtype": "bfloat16", "enforce-eager": True}
SWEEP = {**SMOL, "max-num-seqs": "8"}
H200 = {"gpu-memory-utilization": "0.85", "mamba-cache-mode": "align", "load-format": "dummy"}


def _smol(
    method: str, k: int, length: int = 2048, model: str = "smol135", flags: dict = SMOL, drafter: str = ""
):
    return Asked(method, k, length, model, {"model": drafter} if drafter else {}, flags)


def _h200(method: str, k: int, drafter: str = ""):
    return Asked(method, k, 65536, "/models/nemo", {"model": drafter} if drafter else {}, H200)


def _sgl(method: str, k: int, drafter: str = ""):
    flags = {"max-running-requests": "16"}
    return Asked(method, k, 16384, "/models/target", {"model": drafter} if drafter else {}, flags)


HEALTHY = {
    "h200_base": _h200("none", 0),
    "h200_dflash_k3": _h200("dflash", 3, "/models/dflash"),
    "h200_dspark_k3": _h200("dspark", 3, "/models/dspark"),
    "h200_ngram_k3": _h200("ngram", 3),
    "h200_sgl_base": _sgl("none", 0),
    "h200_sgl_ngram": _sgl("ngram", 3),
    "vllm0271_cpu_baseline": _smol("none", 0, flags={"dtype": "bfloat16"}),
    "vllm0271_cpu_ngram": _smol("ngram", 3),
    "vllm0271cpu_baseline": _smol("none", 0),
    "vllm0271cpu_baseline3": _smol("none", 0),
    "vllm0271cpu_baseline_mimo": _smol("none", 0, model="models/smol_mimo_mtp"),
    "vllm0271cpu_baseline_mimo_rep2": _smol("none", 0, model="models/smol_mimo_mtp"),
    "vllm0271cpu_compile_first": _smol("none", 0, flags={"dtype": "bfloat16"}),
    "vllm0271cpu_compile_second": _smol("none", 0, flags={"dtype": "bfloat16"}),
    "vllm0271cpu_dflash_rand_k4": _smol("dflash", 4, drafter="dflash_rand"),
    "vllm0271cpu_draftmodel_l10_k3": _smol("draft_model", 3, drafter="smol_l10"),
    "vllm0271cpu_draftmodel_l28_k3": _smol("draft_model", 3, drafter="smol_l28"),
    "vllm0271cpu_draftmodel_self_k3": _smol("draft_model", 3, drafter="smol135"),
    "vllm0271cpu_dynamic_draft_l28_k4_k1": _smol("draft_model", 4, drafter="smol_l28"),
    "vllm0271cpu_eagle3_rand_k2": _smol("eagle3", 2, drafter="eagle3_rand"),
    "vllm0271cpu_mtp_mimo_k1": _smol("mtp", 1, model="smol_mimo_mtp"),
    "vllm0271cpu_mtp_mimo_k3": _smol("mtp", 3, model="smol_mimo_mtp"),
    "vllm0271cpu_ngram_k3": _smol("ngram", 3),
    "vllm0271cpu_startup_uni": _smol("none", 0),
    "vllm0271cpu_suffix_k8": _smol("suffix", 8),
    "vllm0271cpu_sweep_eagle_k1_len2048": _smol("eagle", 1, drafter="eagle1_fit", flags=SWEEP),
    "vllm0271cpu_sweep_eagle_k3_len1024": _smol("eagle", 3, 1024, drafter="eagle1_fit", flags=SWEEP),
    "vllm0271cpu_sweep_ngram_k2_len1024": _smol("ngram", 2, 1024, flags=SWEEP),
    "vllm0271cpu_sweep_ngram_k4_len2048": _smol("ngram", 4, flags=SWEEP),
    "vllm0271cpu_sweep_none_len1024": _smol("none", 0, 1024, flags=SWEEP),
    "vllm0271cpu_sweep_suffix_k8_len2048": _smol("suffix", 8, flags=SWEEP),
}


@cache
def report_of(name: str) -> LogReport:
    (path,) = (path for path in LOGS.glob(f"{name}.log*") if path.suffix != ".json")
    return parse_path(path)


def whats(asked: Asked, report: LogReport | None) -> list[str]:
    return [mismatch.what for mismatch in compare(asked, report)]


def test_every_healthy_log_is_in_the_list() -> None:
    names = {path.name.split(".log")[0] for path in LOGS.glob("*.log*")}
    unhealthy = {name for name in names if "fail" in name or "crash" in name}
    assert names - unhealthy - {"h200_sgl_standalone"} == set(HEALTHY)


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_log_confirms_everything_asked(name: str) -> None:
    assert compare(HEALTHY[name], report_of(name)) == []
    assert unconfirmed(HEALTHY[name], report_of(name)) == []


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_log_contradicts_every_other_row(name: str) -> None:
    asked, report = HEALTHY[name], report_of(name)
    assert whats(replace(asked, max_model_len=asked.max_model_len * 2), report) == ["max_model_len"]
    assert whats(replace(asked, model="org/other"), report) == ["model"]
    if asked.k == 0:
        assert whats(replace(asked, method="mtp", k=3), report) == ["speculation"]
        return
    assert whats(replace(asked, k=asked.k + 1), report) == ["k"]
    assert whats(replace(asked, method="none", k=0), report) == ["speculation"]
    other = "eagle3" if asked.method != "eagle3" else "dspark"
    assert whats(replace(asked, method=other), report) == ["method"]
    if asked.speculative:
        assert whats(replace(asked, speculative={"model": "org/other"}), report) == ["drafter"]


def test_a_log_that_ends_before_the_capacity_line_leaves_the_length_open() -> None:
    report, asked = report_of("h200_sgl_standalone"), _sgl("draft_model", 3, "/models/draft")
    assert compare(asked, report) == []
    assert unconfirmed(asked, report) == ["max_model_len"]


def dump(speculation: str, length: int = 4096, version: str = "0.27.1", more: str = "") -> str:
    return vllm(
        f"Initializing a V1 LLM engine (v{version}) with config: model='org/target', "
        f"speculative_config={speculation}, max_seq_len={length}, enforce_eager=False, "
        f"dtype=torch.bfloat16, kv_cache_dtype=auto{more}"
    )


def spec(method: str, k: int, model: str = "org/target") -> str:
    return f"SpeculativeConfig(method='{method}', model='{model}', num_spec_tokens={k})"


MTP = Asked("mtp", 3, 4096, "org/target")


def test_a_mismatch_names_asked_resolved_and_the_line() -> None:
    (found,) = compare(MTP, parse("\n" + dump(spec("mtp", 1))))
    assert (found.what, found.asked, found.resolved, found.line_number) == ("k", "3", "1", 2)
    assert found.text.startswith(
        "k: asked 3, the server resolved 1 (server log line 2: "
        "speculative_config=SpeculativeConfig(method='mtp', model='org/target', num_spec_tokens=1)"
    )


def test_f18_speculation_asked_and_none_resolved() -> None:
    (found,) = compare(MTP, parse(dump("None", version="0.11.0")))
    assert found.words == "speculation: asked mtp with k 3, the server resolved none (no speculation)"
    assert found.line.startswith("speculative_config=None")


def test_f18_a_checkpoint_with_a_packaged_speculator_served_plainly() -> None:
    checkpoint = {"speculators_config": {"proposal_methods": [{"speculative_tokens": 3}]}}
    plain = replace(MTP, method="none", k=0, checkpoint=checkpoint)
    (found,) = compare(plain, parse(dump("None", version="0.11.0")))
    assert "speculator present, not active" in found.text
    assert compare(replace(plain, checkpoint={"model_type": "llama"}), parse(dump("None"))) == []


def test_a_baseline_that_speculates() -> None:
    # A packaged speculator that was detected: nobody asked for it.
    (found,) = compare(replace(MTP, method="none", k=0), parse(dump(spec("eagle3", 3, "org/packed"))))
    assert found.words == "speculation: asked none (no speculation), the server resolved eagle3 with k 3"


@pytest.mark.parametrize(
    ("asked", "resolved", "same"),
    [
        ("mtp", "deepseek_mtp", True),
        ("mtp", "ernie_mtp", True),
        ("deepseek_mtp", "mtp", True),
        ("ngram", "[ngram]", True),
        ("mtp", "eagle", False),
        ("eagle", "eagle3", False),
        ("ngram", "ngram_gpu", False),
        ("draft_model", "eagle", False),
    ],
)
def test_documented_renames_are_no_other_method(asked: str, resolved: str, same: bool) -> None:
    report = parse(dump(spec(resolved, 3)))
    assert (whats(replace(MTP, method=asked), report) == []) is same


def test_a_rename_that_the_log_announces_is_no_other_method() -> None:
    log = vllm("method `hydra` is deprecated and replaced with `mtp`.", level="WARNING") + dump(
        spec("mtp", 3)
    )
    assert whats(replace(MTP, method="hydra"), parse(log)) == []


def test_sglang_reaches_mtp_through_eagle_and_counts_one_token_more() -> None:
    arguments = (
        "server_args=ServerArgs(model_path='org/target', speculative_algorithm='{}', "
        "speculative_num_draft_tokens=4, max_running_requests=64)"
    )
    capacity = "max_total_num_tokens=1000, chunked_prefill_size=8192, max_prefill_tokens=1, "
    log = sglang(arguments.format("EAGLE")) + sglang(
        capacity + "max_running_requests=48, context_len=4096, available_gpu_mem=1.00 GB"
    )
    assert compare(MTP, parse(log)) == []
    assert whats(replace(MTP, k=4), parse(log)) == ["k"]
    # Slots are cut to 48 under speculation unless the flag is given.
    asked = replace(MTP, flags={"max-running-requests": "64"})
    assert whats(asked, parse(log)) == ["max-running-requests"]
    assert whats(MTP, parse(log.replace("EAGLE", "EAGLE3"))) == ["method"]


def test_old_dumps_name_the_drafter_but_no_method() -> None:
    old = dump("SpeculativeConfig(draft_model='org/head', num_spec_tokens=3)", version="0.6.3")
    asked = replace(MTP, method="eagle")
    assert whats(asked, parse(old)) == []
    assert unconfirmed(asked, parse(old)) == ["method"]
    assert whats(replace(asked, method="ngram"), parse(old)) == ["method"]
    assert whats(replace(asked, k=5), parse(old)) == ["k"]


def capacity(length: int) -> str:
    return vllm(f"Maximum concurrency for {length:,} tokens per request: 3.00x")


def test_a_length_that_was_fitted_to_memory() -> None:
    (found,) = compare(MTP, parse(dump(spec("mtp", 3)) + capacity(3072)))
    assert (found.what, found.asked, found.resolved) == ("max_model_len", "4096", "3072")
    assert "Maximum concurrency for 3,072 tokens" in found.line


def test_a_length_that_the_drafter_limited() -> None:
    said = (
        "draft model's max_model_len (2048) is smaller than target's max_model_len (4096), "
        "reducing max_model_len to 2048"
    )
    log = parse(dump(spec("mtp", 3)) + vllm(said, level="WARNING"))
    (found,) = compare(MTP, log)
    assert (found.what, found.resolved, found.line_number) == (
        "max_model_len",
        "2048 (limited by the drafter)",
        2,
    )
    assert whats(replace(MTP, max_model_len=2048), log) == []


def test_kv_blocks_that_were_forced_though_nobody_asked() -> None:
    log = parse(dump(spec("mtp", 3)) + vllm("Overriding num_gpu_blocks=900 with num_gpu_blocks_override=100"))
    (found,) = compare(MTP, log)
    assert found.words == (
        "num_gpu_blocks: asked the measured blocks, the server resolved 100 blocks (forced; 900 measured)"
    )
    assert whats(replace(MTP, flags={"num-gpu-blocks-override": "100"}), log) == []
    assert whats(replace(MTP, launched=False), log) == []
    # What graph profiling does for a moment.
    momentary = vllm("Overriding num_gpu_blocks=0 with num_gpu_blocks_override=512")
    assert compare(MTP, parse(dump(spec("mtp", 3)) + momentary)) == []


@pytest.mark.parametrize(
    ("asked", "resolved", "same"),
    [
        ("org/target", "org/target", True),
        ("models/toy", "/home/me/project/models/toy", True),
        ("./models/toy/", "models/toy", True),
        ("/models/toy", "models/toy", True),
        ("org/target", "/root/.cache/huggingface/hub/models--org--target/snapshots/0a1b", True),
        ("org/target", "/root/.cache/huggingface/hub/models--org--target-2/snapshots/0a1b", False),
        ("org/target", "org/target-instruct", False),
        ("toy", "mytoy", False),
        ("s3://bucket/toy", "/tmp/model_streamer/0a1b", None),
    ],
)
def test_names_of_one_checkpoint(asked: str, resolved: str, same: bool | None) -> None:
    assert same_checkpoint(asked, resolved) is same


def test_arguments_can_contradict_but_not_confirm() -> None:
    said = "non-default args: {'model': 'org/target', 'speculative_config': {'method': 'mtp', "
    echo = parse(vllm(said + "'num_speculative_tokens': 3}}", process="APIServer pid=1"))
    assert compare(MTP, echo) == []
    assert unconfirmed(MTP, echo) == ["method", "k", "max_model_len", "model"]
    assert whats(replace(MTP, k=1), echo) == ["k"]


def test_without_a_log_nothing_is_confirmed() -> None:
    assert compare(MTP, None) == []
    assert unconfirmed(MTP, None) == ["method", "k", "max_model_len", "model"]
    assert unconfirmed(replace(MTP, method="none", k=0), None) == ["method", "max_model_len", "model"]
    assert unconfirmed(replace(MTP, launched=False, model=None), parse("no such engine\n")) == [
        "method",
        "k",
        "max_model_len",
    ]


def counters(drafts: int, positions: int):
    lines = [f'vllm:spec_decode_num_drafts_total{{engine="0"}} {drafts}']
    lines += [
        f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="0",position="{i}"}} 0'
        for i in range(positions)
    ]
    return difference("", "\n".join(lines) + "\n")


def test_counters_tell_k_and_speculation_where_the_log_does_not() -> None:
    assert unconfirmed(MTP, None, counters(10, 3)) == ["method", "max_model_len", "model"]
    (found,) = compare(MTP, None, counters(10, 5))
    assert found.text == "k: asked 3, the server resolved 5 positions counted in /metrics"
    (found,) = compare(replace(MTP, method="none", k=0), None, counters(10, 3))
    assert found.what == "speculation"
    assert compare(replace(MTP, method="none", k=0), None, counters(0, 0)) == []
    assert compare(MTP, None, difference("", "")) == []


def decoded(drafts: int, tokens: int, requests: int = 10):
    counted = {"spec_decode_num_drafts": drafts, "generation_tokens": tokens, "request_success": requests}
    lines = [f'vllm:{name}_total{{engine="0"}} {value}' for name, value in counted.items()]
    return difference("", "\n".join(lines) + "\n")


def test_f18_a_method_that_never_drafted_was_not_measured() -> None:
    (found,) = compare(MTP, None, decoded(0, 640))
    assert (
        found.text
        == "speculation: asked mtp with k 3, the server resolved no draft in the window, by /metrics"
    )
    assert compare(MTP, None, decoded(200, 640)) == []
    # Lookups may find nothing, short answers may leave no step to draft at, a schedule may stop drafting.
    assert compare(replace(MTP, method="ngram"), None, decoded(0, 640)) == []
    assert compare(MTP, None, decoded(0, 40)) == []
    schedule = {"num_speculative_tokens_per_batch_size": [[1, 4, 3], [5, 64, 0]]}
    assert compare(replace(MTP, speculative=schedule), None, decoded(0, 640)) == []


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_log_cut_anywhere_contradicts_nothing(name: str) -> None:
    (path,) = (path for path in LOGS.glob(f"{name}.log*") if path.suffix != ".json")
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    start = text.index(b"server_args=" if "sgl" in name else b"with config: ")
    for cut in (*range(0, len(text), len(text) // 5), *range(start, start + 4000, 400)):
        report = parse_chunks([text[:cut]])
        assert compare(HEALTHY[name], report) == []
        assert all(isinstance(note, str) for note in server_notes(HEALTHY[name], report, 0, cut))
        assert set(server_config(report)[0]) == set(CONFIG_FIELDS)
