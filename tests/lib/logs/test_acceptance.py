"""One definition of acceptance from log lines, counters and chunks, and an alarm when they disagree."""

from __future__ import annotations

import gzip
import json

import pytest

from scripts.lib.logs import acceptance, parse_path
from scripts.lib.logs.prometheus import difference
from tests.lib.logs.golden import DATA
from tests.lib.logs.helpers import parse, sglang, vllm
from tests.lib.logs.test_prometheus import exposition


def _line(mean: float, accepted: int, drafted: int, positions: str = "0.800, 0.600, 0.500") -> str:
    return vllm(
        f"SpecDecoding metrics: Mean acceptance length: {mean:.2f}, Accepted throughput: 1.00 tokens/s, "
        f"Drafted throughput: 1.00 tokens/s, Accepted: {accepted} tokens, Drafted: {drafted} tokens, "
        f"Per-position acceptance rate: {positions}, Avg Draft acceptance rate: "
        f"{100 * accepted / drafted:.1f}%",
        "APIServer pid=1",
    )


LINES = [_line(2.90, 1900, 3000), _line(2.88, 1861, 2970), _line(1.33, 1, 9, "0.333, 0.000, 0.000")]


def test_lines_are_weighted_by_tokens() -> None:
    found = acceptance.from_log(parse("".join(LINES)).speculation)
    assert found.length == pytest.approx(1 + 3762 / 1993)
    assert found.rate == pytest.approx(3762 / 5979)
    assert (found.drafts, found.exact, found.samples) == (1993, True, 3)
    assert found.per_position[0] == pytest.approx((0.8 * 1990 + 0.333 * 3) / 1993)


def test_window_takes_lines_that_start_in_it() -> None:
    report = parse("".join(LINES))
    start = len(LINES[0])
    found = acceptance.from_log(report.speculation, start, start + len(LINES[1]))
    assert (found.accepted, found.samples) == (1861, 1)
    assert acceptance.from_log(report.speculation, start, start).length is None


def test_same_from_a_plain_list_of_samples() -> None:
    samples = list(parse("".join(LINES)).speculation)
    assert acceptance.from_log(samples, 1).accepted == 1862


def test_no_line_is_absent_with_a_reason() -> None:
    found = acceptance.from_log(parse("nothing\n").speculation)
    assert (found.length, found.rate, found.accepted) == (None, None, None)
    assert "no speculative-metrics line" in found.reason


def test_nothing_accepted_is_length_one_not_absent() -> None:
    found = acceptance.from_log(parse(_line(1.0, 0, 300, "0.000, 0.000, 0.000")).speculation)
    assert (found.length, found.rate) == (1.0, 0.0)


def test_nothing_drafted_is_absent() -> None:
    text = _line(1.0, 1, 1).replace("Accepted: 1", "Accepted: 0").replace("Drafted: 1 ", "Drafted: 0 ")
    found = acceptance.from_log(parse(text).speculation)
    assert found.length is None
    assert "no token was drafted" in found.reason


def test_unknown_drafts_of_empty_lines_are_filled_from_the_others() -> None:
    dump = vllm(
        "Initializing a V1 LLM engine (v0.26.0) with config: model='t', "
        "speculative_config=SpeculativeConfig(method='suffix', model=None, num_spec_tokens=3), max_seq_len=1"
    )
    report = parse(dump + _line(3.0, 400, 500) + _line(1.0, 0, 50, "0.000, 0.000, 0.000"))
    found = acceptance.from_log(report.speculation)
    assert found.drafts == pytest.approx(200 + 20)
    assert found.length == pytest.approx(1 + 400 / 220)
    assert not found.exact


V0 = (
    "Speculative metrics: Draft acceptance rate: {rate}, System efficiency: {efficiency}, Number of "
    "speculative tokens: 4, Number of accepted tokens: {accepted}, Number of draft tokens: {drafted}, "
    "Number of emitted tokens: {emitted}."
)


def test_v0_totals_are_differenced_in_a_window() -> None:
    first = vllm(V0.format(rate=0.5, efficiency=0.4, accepted=2000, drafted=4000, emitted=2000))
    second = vllm(V0.format(rate=0.6, efficiency=0.5, accepted=5000, drafted=8000, emitted=5000))
    report = parse(first + second)
    inside = acceptance.from_log(report.speculation, len(first))
    assert inside.length == pytest.approx(3000 / 1000)
    assert not inside.cumulative
    whole = acceptance.from_log(report.speculation)
    assert whole.length == pytest.approx(2.5)
    assert whole.cumulative


def test_v0_totals_that_fall_mean_a_restart() -> None:
    first = vllm(V0.format(rate=0.5, efficiency=0.4, accepted=2000, drafted=4000, emitted=2000))
    second = vllm(V0.format(rate=0.5, efficiency=0.4, accepted=200, drafted=400, emitted=200))
    found = acceptance.from_log(parse(first + second).speculation, len(first))
    assert found.length is None
    assert "restarted" in found.reason


def test_dialect_without_k_needs_k() -> None:
    text = vllm(
        "SpecDecoding metrics: Draft acceptance rate: 61.0%, Accepted: 610 tokens, Drafted: 1000 tokens"
    )
    report = parse(text)
    assert "give k" in acceptance.from_log(report.speculation).reason
    assert acceptance.from_log(report.speculation, k=3).length == pytest.approx(2.83)


def test_d1_and_d2_give_the_same_definition() -> None:
    text = (
        "SpecDecoding metrics: Draft acceptance rate: 61.0%, Mean acceptance length: {}, Accepted: 610 "
        "tokens, Drafted: 1000 tokens, Per-position acceptance rate: 0.800, 0.600, 0.430"
    )
    lengths = [
        acceptance.from_log(parse(vllm(text.format(mean))).speculation).length for mean in ("1.83", "2.83")
    ]
    assert lengths == [pytest.approx(2.83), pytest.approx(2.83)]


def test_sglang_lines_weigh_by_running_requests() -> None:
    line = (
        "Decode batch, #running-req: {}, #token: 9, token usage: 0.05, accept len: {}, accept rate: 0.60, "
        "gen throughput (token/s): 5.0, #queue-req: 0"
    )
    report = parse(sglang(line.format(3, "3.00")) + sglang(line.format(1, "2.00")))
    found = acceptance.from_log(report.speculation)
    assert found.length == pytest.approx((3 * 3.0 + 2.0) / 4)
    assert not found.exact


def test_counters() -> None:
    delta = difference(exposition(120, 360, 40), exposition(1120, 3360, 2140))
    found = acceptance.from_metrics(delta)
    assert found.length == pytest.approx(3.10)
    assert found.rate == pytest.approx(0.70)


def test_counters_of_v0_need_k() -> None:
    text = (
        "vllm:spec_decode_num_accepted_tokens_total 1500\nvllm:spec_decode_num_draft_tokens_total 4000\n"
        "vllm:spec_decode_num_emitted_tokens_total 2000\n"
    )
    delta = difference("", text)
    assert acceptance.from_metrics(delta).length is None
    assert acceptance.from_metrics(delta, k=4).length == pytest.approx(2.0)


def test_counters_of_sglang() -> None:
    text = (
        'sglang:spec_verify_calls_total{model_name="m"} '
        '1000\nsglang:generation_tokens_total{model_name="m"} 2810\n'
        'sglang:num_requests_total{model_name="m"} 10\n'
    )
    found = acceptance.from_metrics(difference("", text), k=3)
    assert found.length == pytest.approx(2.8)
    assert found.rate == pytest.approx(1800 / 3000)


def test_sglang_log_and_counters_agree_with_its_own_average() -> None:
    info = json.loads(gzip.decompress((DATA / "h200_sgl_ngram.server_info.gz").read_bytes()))
    own = info["internal_states"][0]["avg_spec_accept_length"]
    report = parse_path(DATA / "h200_sgl_ngram.log.gz")
    counters = gzip.decompress((DATA / "h200_sgl_ngram.metrics.gz").read_bytes()).decode()
    log = acceptance.from_log(report.speculation)
    metrics = acceptance.from_metrics(difference("", counters), report.get("num_speculative_tokens"))
    assert log.length == pytest.approx(own, rel=0.01)
    assert metrics.length == pytest.approx(own, rel=0.01)
    assert acceptance.compare(log, metrics).ok


def test_counters_without_speculation_are_absent() -> None:
    found = acceptance.from_metrics(difference("", "vllm:generation_tokens_total 5\n"))
    assert found.length is None
    assert "spec_decode" in found.reason


def test_no_draft_between_snapshots_is_absent_not_one() -> None:
    found = acceptance.from_metrics(difference(exposition(120, 360, 40), exposition(120, 360, 40)))
    assert found.length is None


def test_chunks_leave_out_each_requests_first() -> None:
    # Two requests of 1 + 4 x 3 tokens: the first chunk is the prefill's token.
    found = acceptance.from_chunks(tokens=26, chunks=10, requests=2)
    assert found.length == pytest.approx(3.0)
    assert acceptance.from_chunks(tokens=2, chunks=2, requests=2).length is None


def test_effective_tokens() -> None:
    for steps in (None, 1000):
        found = acceptance.effective_tokens(1720, 720, 200, steps)
        assert found.tokens_per_step == pytest.approx(1.72)
        assert found.coverage == pytest.approx(0.20)
    assert acceptance.effective_tokens(None, 5, 5).tokens_per_step is None
    assert acceptance.effective_tokens(5, None, None).reason


def _value(length: float | None, source: str = "log") -> acceptance.Acceptance:
    return acceptance.Acceptance(source, length, None)


def test_agreement_within_the_bound() -> None:
    found = acceptance.compare(_value(2.90), _value(2.85), _value(2.75))
    assert found.ok
    assert found.compared == 2


def test_alarm_beyond_the_bound_names_both_values() -> None:
    found = acceptance.compare(_value(2.90), _value(2.40, "metrics"))
    assert not found.ok
    assert "2.90" in found.alarms[0]
    assert "2.40" in found.alarms[0]
    assert acceptance.compare(_value(2.90), None, _value(2.40, "chunks")).alarms


def test_absent_sources_are_not_compared() -> None:
    assert acceptance.compare(_value(None), _value(2.0), None).compared == 0


def test_ngram_chunks_are_compared_with_effective_tokens() -> None:
    effective = acceptance.Effective(1.72, 0.2)
    agrees = acceptance.compare(
        _value(4.6), _value(4.6, "metrics"), _value(1.70, "chunks"), "ngram", effective
    )
    assert agrees.ok
    assert agrees.compared == 2
    off = acceptance.compare(_value(4.6), _value(4.6, "metrics"), _value(4.6, "chunks"), "ngram", effective)
    assert not off.ok
