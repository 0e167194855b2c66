"""Periodic lines and every dialect of speculative metrics become samples of one definition."""

from __future__ import annotations

import pytest

from scripts.lib.logs import parse_chunks
from tests.lib.logs.helpers import parse, sglang, vllm

STATS = (
    "Engine 000: Avg prompt throughput: 310.2 tokens/s, Avg generation throughput: 88.1 tokens/s, Running: "
    "4 reqs, Waiting: 1 reqs, GPU KV cache usage: 2.4%, Prefix cache hit rate: 11.0%"
)
V0_STATS = (
    "Avg prompt throughput: 310.2 tokens/s, Avg generation throughput: 88.1 tokens/s, Running: 4 reqs, "
    "Swapped: 2 reqs, Pending: 1 reqs, GPU KV cache usage: 2.4%, CPU KV cache usage: 0.5%."
)
RICH_STATS = (
    "2 Engines Aggregated: Avg prompt throughput: 1,310.2 tokens/s, Avg generation throughput: 88.1 "
    "tokens/s, Running: 4 reqs, Waiting: 1 reqs, Deferred: 2 reqs, Preemptions: 3, GPU KV cache usage: "
    "2.4%, Prefix cache hit rate: 11.0%, External prefix cache hit rate: 50.0%, MM cache hit rate: 60.0%"
)


def _stats(message: str) -> tuple:
    (sample,) = parse(vllm(message, "APIServer pid=1")).intervals
    return (
        sample.engine,
        sample.running,
        sample.waiting,
        sample.swapped,
        sample.kv_usage_percent,
        sample.prompt_tps,
        sample.generation_tps,
        sample.prefix_hit_percent,
        sample.preemptions,
    )


def test_statistics_lines() -> None:
    assert _stats(STATS) == ("000", 4, 1, None, 2.4, 310.2, 88.1, 11.0, None)
    assert _stats(V0_STATS) == (None, 4, 1, 2, 2.4, 310.2, 88.1, None, None)
    assert _stats(RICH_STATS) == ("2 Engines", 4, 1, None, 2.4, 1310.2, 88.1, 11.0, 3)


def test_hit_rate_left_out_is_absent_not_zero() -> None:
    assert _stats(STATS.partition(", Prefix")[0])[-2] is None


def test_sample_keeps_place_time_and_process() -> None:
    (sample,) = parse("\n" + vllm(STATS, "APIServer pid=1")).intervals
    assert (sample.offset, sample.line, sample.timestamp, sample.process) == (
        1,
        2,
        "11-29 18:22:15",
        "APIServer",
    )


@pytest.mark.parametrize("tail", ["", ", Prefix cache hit rate: 11.0%"])
def test_fast_way_and_general_way_agree(tail: str) -> None:
    plain = vllm(STATS.partition(", Prefix")[0] + tail, "APIServer pid=1")
    spec = vllm(E_LINE, "APIServer pid=1")
    usual = parse(plain + spec)
    general = parse(
        "Jan  2 03:04:05 hostx vllm[4242]: " + plain + "Jan  2 03:04:05 hostx vllm[4242]: " + spec
    )
    for ours, theirs in ((usual.intervals, general.intervals), (usual.speculation, general.speculation)):
        (one,), (other,) = ours, theirs
        assert {k: v for k, v in one._asdict().items() if k != "offset"} == {
            k: v for k, v in other._asdict().items() if k != "offset"
        }


E_LINE = (
    "SpecDecoding metrics: Mean acceptance length: 2.83, Accepted throughput: 61.00 tokens/s, Drafted "
    "throughput: 100.00 tokens/s, Accepted: 610 tokens, Drafted: 1000 tokens, Per-position acceptance "
    "rate: 0.801, 0.601, 0.430, Avg Draft acceptance rate: 61.0%"
)
D_LINE = (
    "SpecDecoding metrics: Draft acceptance rate: 61.0%, Mean acceptance length: {}, Accepted: 610 tokens, "
    "Drafted: 1000 tokens, Per-position acceptance rate: 0.801, 0.601, 0.430"
)
C_LINE = "SpecDecoding metrics: Draft acceptance rate: 61.0%, Accepted: 610 tokens, Drafted: 1000 tokens"
A_LINE = (
    "Speculative metrics: Draft acceptance rate: 0.640, System efficiency: 0.600, Number of speculative "
    "tokens: 3, Number of accepted tokens: 1920, Number of draft tokens: 3000, Number of emitted tokens: "
    "2400."
)
B_LINE = (
    "Speculative metrics: Draft acceptance rate: 0.640, Number of accepted tokens: 64, Number of draft "
    "tokens: 100, "
)
DUMP = (
    "Initializing a V1 LLM engine ({version}) with config: model='t', "
    "speculative_config=SpeculativeConfig(method='eagle', model='d', num_spec_tokens=3), max_seq_len=1024"
)


@pytest.mark.parametrize(
    ("message", "dialect", "accepted", "drafted", "mean", "k", "positions"),
    [
        (A_LINE, "a", 1920, 3000, 2.4, 3, ()),
        (C_LINE, "c", 610, 1000, 2.83, 3, ()),
        (D_LINE.format("1.83"), "d1", 610, 1000, 2.83, 3, (0.801, 0.601, 0.43)),
        (D_LINE.format("2.83"), "d2", 610, 1000, 2.83, 3, (0.801, 0.601, 0.43)),
        (E_LINE, "e", 610, 1000, 2.83, 3, (0.801, 0.601, 0.43)),
    ],
    ids=["a", "c", "d1", "d2", "e"],
)
def test_dialects(
    message: str, dialect: str, accepted: int, drafted: int, mean: float, k: int, positions: tuple
) -> None:
    report = parse(vllm(DUMP.format(version="v0.8.4")) + vllm(message, "APIServer pid=1"))
    (sample,) = report.speculation
    assert (sample.dialect, sample.accepted, sample.drafted, sample.k) == (dialect, accepted, drafted, k)
    assert sample.mean_length == pytest.approx(mean)
    assert sample.per_position == positions
    assert sample.cumulative == (dialect == "a")


def test_dialect_b_with_trailing_comma() -> None:
    report = parse(vllm(DUMP.format(version="v0.8.2")) + vllm(B_LINE, "APIServer pid=1"))
    (sample,) = report.speculation
    assert (sample.dialect, sample.accepted, sample.drafted) == ("b", 64, 100)
    assert sample.mean_length == pytest.approx(1 + 64 / (100 / 3))


def test_dialect_b_without_k_knows_no_mean() -> None:
    (sample,) = parse(vllm(B_LINE)).speculation
    assert (sample.mean_length, sample.drafts) == (None, None)


def test_d_without_usable_positions_goes_by_release() -> None:
    line = (
        "SpecDecoding metrics: Draft acceptance rate: 61.0%, Mean acceptance length: 1.83, Accepted: 610 "
        "tokens, Drafted: 1000 tokens, Per-position acceptance rate: nan"
    )
    old = parse(vllm(DUMP.format(version="v0.8.5")) + vllm(line)).speculation[0]
    new = parse(vllm(DUMP.format(version="v0.9.0")) + vllm(line)).speculation[0]
    assert (old.dialect, old.mean_length) == ("d1", pytest.approx(2.83))
    assert (new.dialect, new.mean_length) == ("d2", pytest.approx(1.83))


@pytest.mark.parametrize("text", ["nan%", "0.0%"])
def test_nothing_drafted(text: str) -> None:
    line = (
        f"SpecDecoding metrics: Draft acceptance rate: {text}, Mean acceptance length: nan, Accepted: 0 "
        "tokens, Drafted: 0 tokens, Per-position acceptance rate: nan, nan"
    )
    (sample,) = parse(vllm(line)).speculation
    assert (sample.accepted, sample.drafted, sample.drafts, sample.mean_length) == (0, 0, 0, None)


def test_v0_nan() -> None:
    line = A_LINE.replace("0.640", "nan").replace("0.600", "nan")
    (sample,) = parse(vllm(line)).speculation
    assert (sample.printed_rate, sample.mean_length) == (None, None)


def test_diffusion_is_not_speculation() -> None:
    report = parse(
        vllm("DiffusionDecoding metrics: Committed token throughput: 5.00 tokens/s, Committed: 10 tokens")
    )
    assert len(report.speculation) == 0


def test_long_position_lists() -> None:
    rates = ", ".join(["0.900"] + ["0.000"] * 199)
    line = E_LINE.replace("0.801, 0.601, 0.430", rates)
    (sample,) = parse(vllm(line)).speculation
    assert len(sample.per_position) == 200
    assert sample.per_position[199] == 0.0


def test_thousands_separators() -> None:
    line = E_LINE.replace("610 tokens", "1,610 tokens").replace("1000 tokens", "3,000 tokens")
    (sample,) = parse(vllm(line)).speculation
    assert (sample.accepted, sample.drafted) == (1610, 3000)


def test_sample_belongs_to_the_engine_line_before_it() -> None:
    text = ""
    for engine in ("000", "001"):
        text += vllm(STATS.replace("000", engine), "APIServer pid=1") + vllm(E_LINE, "APIServer pid=1")
    assert [sample.engine for sample in parse(text).speculation] == ["000", "001"]


@pytest.mark.parametrize("method", ["ngram", "suffix"])
def test_variable_drafting_recovers_drafts_from_the_mean(method: str) -> None:
    dump = DUMP.format(version="v0.26.0").replace("eagle", method)
    line = E_LINE.replace("Drafted: 1000", "Drafted: 700").replace("2.83", "3.44")
    (sample,) = parse(vllm(dump) + vllm(line)).speculation
    assert sample.drafts == pytest.approx(250)


def test_variable_drafting_without_acceptance_does_not_tell_its_drafts() -> None:
    dump = DUMP.format(version="v0.26.0").replace("eagle", "ngram")
    line = E_LINE.replace("Accepted: 610", "Accepted: 0").replace("2.83", "1.00")
    (sample,) = parse(vllm(dump) + vllm(line)).speculation
    assert sample.drafts is None
    fixed = parse(vllm(DUMP.format(version="v0.26.0")) + vllm(line)).speculation[0]
    assert fixed.drafts == pytest.approx(1000 / 3)


DECODE = [
    "Decode batch. #running-req: 4, #token: 8123, token usage: 0.05, accept len: 2.80, cuda graph: True, "
    "gen throughput (token/s): 512.30, #queue-req: 3",
    "Decode batch. #running-req: 4, #token: 8123, token usage: 0.05, accept len: 2.80, gen throughput "
    "(token/s): 512.30, largest-len: 0, #queue-req: 3, ",
    "Decode batch [120], #running-req: 4, #token: 8123, token usage: 0.05, accept len: 2.80, accept rate: "
    "0.56, cuda graph: True, gen throughput (token/s): 512.30, #queue-req: 3, ",
    "Decode batch, #running-req: 4, #token: 8123, token usage: 0.05, accept len: 2.80, accept rate: 0.60, "
    "cuda graph: True, gen throughput (token/s): 512.30, #queue-req: 3",
    "Decode batch, #running-req: 4, #full token: 8123, full token usage: 0.05, #swa token: 99, swa token "
    "usage: 0.77, accept len: 2.80, accept rate: 0.60, npu graph: True, gen throughput (token/s): 512.30, "
    "#queue-req: 3, TFLOPS: 1.0",
    "Decode batch, #running-req: 4, #token: 8123, token usage: 0.05, mamba num: 4, mamba usage: 0.90, "
    "accept len: 2.80, accept rate: 0.60, cap len: 4.00, block accept len: 9.90, gen throughput (token/s): "
    "512.30, #queue-req: 3",
]


@pytest.mark.parametrize("message", DECODE, ids=[str(i) for i in range(len(DECODE))])
def test_sglang_decode_lines(message: str) -> None:
    report = parse(sglang(message, " DP1 TP0"))
    (sample,) = report.intervals
    assert (sample.kind, sample.running, sample.waiting, sample.generation_tps) == ("decode", 4, 3, 512.3)
    assert sample.kv_usage_percent == pytest.approx(5.0)
    assert sample.process == "DP1 TP0"
    (spec,) = report.speculation
    assert (spec.dialect, spec.mean_length) == ("sglang", 2.8)
    assert report.engine == "sglang"


def test_sglang_without_speculation_has_no_length() -> None:
    line = (
        "Decode batch. #running-req: 4, #token: 8123, token usage: 0.05, gen throughput (token/s): 512.30, "
        "#queue-req: 0"
    )
    report = parse(sglang(line))
    assert len(report.intervals) == 1
    assert len(report.speculation) == 0


def test_sglang_printed_rate_is_recomputed() -> None:
    args = (
        "server_args=ServerArgs(model_path='t', speculative_algorithm='EAGLE', "
        "speculative_num_draft_tokens=4, decode_log_interval=40)"
    )
    report = parse(sglang(args) + sglang(DECODE[3].replace("0.60", "0.70")))
    (spec,) = report.speculation
    assert spec.accepted / spec.drafted == pytest.approx((2.8 - 1) / 3)


def test_sglang_prefill_lines() -> None:
    line = (
        "Prefill batch, #new-seq: 1, #new-token: 25, #cached-token: 75, token usage: 0.01, #running-req: "
        "2, #queue-req: 5, input throughput (token/s): 54.68"
    )
    (sample,) = parse(sglang(line)).intervals
    assert (sample.kind, sample.prefix_hit_percent, sample.prompt_tps, sample.waiting) == (
        "prefill",
        75.0,
        54.68,
        5,
    )
    old = (
        "Prefill batch. #new-seq: 1, #new-token: 25, #cached-token: 0, cache hit rate: 0.00%, token usage: "
        "0.01, #running-req: 2, #queue-req: 0"
    )
    assert parse(sglang(old)).intervals[0].prefix_hit_percent == 0.0


def test_series_by_byte_window() -> None:
    line = vllm(STATS, "APIServer pid=1")
    series = parse(line * 5).intervals
    size = len(line)
    assert [sample.offset for sample in series.between(size, 3 * size)] == [size, 2 * size]
    assert len(list(series.between(None, None))) == 5
    assert series[-1].offset == 4 * size
    assert len(series[1:3]) == 2
    with pytest.raises(IndexError):
        series[5]


def test_many_samples_stay_small() -> None:
    line = (vllm(STATS, "APIServer pid=1") + vllm(E_LINE, "APIServer pid=1")).encode()
    report = parse_chunks([line * 500] * 20)
    assert len(report.intervals) == len(report.speculation) == 10_000
