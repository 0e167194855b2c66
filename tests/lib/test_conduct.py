"""How the window went, from requests, counters and the log between its bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.lib.conduct import conduct
from scripts.lib.evidence import Evidence, Request
from scripts.lib.logs.prometheus import difference
from scripts.lib.logs.root_cause import errors_between
from tests import request_factory
from tests.lib.logs.helpers import parse, vllm
from tests.lib.test_truth import HEALTHY, dump, report_of, spec

STARTUP = dump(spec("mtp", 2))


def request(index: int = 0, reason: str = "length", output: str | None = "A fine answer.") -> Request:
    return request_factory.request(index, finish_reason=reason, output=output)


def periodic(
    running: int, waiting: int, usage: float = 4.1, engine: str = "000", hit: float = 0.0, prompt: float = 0.0
) -> str:
    return vllm(
        f"Engine {engine}: Avg prompt throughput: {prompt} tokens/s, Avg generation throughput: 402.0 tokens/s, "
        f"Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: {usage}%, "
        f"Prefix cache hit rate: {hit}%"
    )


def went(
    window: str = "",
    concurrency: int = 4,
    requests: tuple[Request, ...] = (request(),),
    counters: tuple[str, str] | None = None,
    startup: str = STARTUP,
    after: str = "",
    **traits: object,
) -> dict:
    bounds = {"log_start": len(startup), "log_end": len(startup + window)}
    manifest = {"window": bounds, "scenario": traits or None}
    evidence = Evidence(Path(), manifest, (), requests, None, None, None)
    delta = difference(*counters) if counters else None
    values, _ = conduct(evidence, parse(startup + window + after), delta, concurrency)
    return values


def counted(**totals: float) -> str:
    return "".join(f'vllm:{name}_total{{engine="0"}} {value}\n' for name, value in totals.items())


def finished(stop: int, length: int) -> str:
    return "".join(
        f'vllm:request_success_total{{engine="0",finished_reason="{reason}"}} {number}\n'
        for reason, number in (("stop", stop), ("length", length))
    )


@pytest.mark.parametrize(
    ("after", "foreign"), [(finished(3, 9), 0), (finished(3, 11), 2), (finished(0, 1), None), ("", None)]
)
def test_requests_of_others_are_those_beyond_the_clients_own(after: str, foreign: int | None) -> None:
    own = tuple(map(request, range(4)))
    assert went(requests=own, counters=(finished(2, 6), after))["foreign_requests"] == foreign


def test_where_a_request_failed_the_workflow_itself_asks_the_server() -> None:
    lost = (request(), request_factory.request(1, finish_reason=None, error={"type": "timeout"}))
    assert went(requests=lost, counters=(finished(2, 6), finished(2, 9)))["foreign_requests"] is None


def test_f04_a_token_budget_that_holds_requests_back() -> None:
    startup = vllm("Chunked prefill is enabled with max_num_batched_tokens=32.") + STARTUP
    found = went(periodic(10, 54), 64, startup=startup)
    assert (found["running_max"], found["running_asked"], found["waiting_share"]) == (10, 64, 1.0)
    assert found["scheduler_words"].startswith("scheduler-limited: 10 of 64 run, KV only 4")
    assert "the token budget allows 10" in found["scheduler_words"]


def test_only_lines_of_the_window_count() -> None:
    found = went("", 64, startup=STARTUP + periodic(10, 54), after=periodic(10, 54))
    assert found["running_max"] is None
    assert found["scheduler_words"] is None


def test_a_full_cache_is_told_from_the_scheduler() -> None:
    found = went(periodic(10, 54, 97.0), 64)
    assert found["scheduler_words"] == "10 of 64 run at most, the KV cache 97 % full"
    assert found["kv_usage_max"] == 97.0


def test_engines_side_by_side_share_the_requests() -> None:
    lines = periodic(32, 1, engine="000") + periodic(32, 1, engine="001")
    assert went(lines, 64)["running_asked"] == 32
    assert went(lines, 64)["scheduler_words"] is None
    assert went(lines, 128)["running_asked"] == 64


@pytest.mark.parametrize(
    ("hits", "share"), [((0.4, 0.4), 0.004), ((98.9, 98.9), 0.989), ((0.0, 61.5), 0.615)]
)
def test_f08_prefix_hits_by_the_log_where_nothing_is_counted(hits: tuple, share: float) -> None:
    lines = "".join(periodic(1, 0, hit=hit, prompt=318.0) for hit in hits)
    assert went(lines, 1)["prefix_hit_share"] == pytest.approx(share)


def test_counters_are_differences_and_come_before_the_log() -> None:
    # As in F24: what was counted before the window is not of the window.
    before = counted(prefix_cache_queries=5000, prefix_cache_hits=4000, num_preemptions=7)
    after = counted(prefix_cache_queries=6000, prefix_cache_hits=4050, num_preemptions=9)
    found = went(periodic(1, 0, hit=80.0), 1, counters=(before, after))
    assert found["prefix_hit_share"] == pytest.approx(0.05)
    assert found["preemptions"] == 2


def test_a_restart_leaves_no_figure_but_a_reason() -> None:
    before, after = counted(num_preemptions=7), counted(num_preemptions=1)
    manifest = {"window": {}, "scenario": None}
    evidence = Evidence(Path(), manifest, (), (request(),), None, None, None)
    values, reasons = conduct(evidence, None, difference(before, after), 1)
    assert values["preemptions"] is None
    assert "restarted" in reasons["preemptions"]
    assert reasons["running_max"] == "there is no server log of the window"


def test_kernels_compiled_in_the_window() -> None:
    jit = vllm(
        "Triton kernel JIT compilation during inference: _kernel. This causes a latency spike; consider"
    )
    assert went(jit + jit, startup=STARTUP + jit)["compiled_in_window"] == 2
    assert went("", startup=STARTUP + jit)["compiled_in_window"] == 0


ERROR = "".join(
    vllm(line, level="ERROR")
    for line in (
        "EngineCore encountered a fatal error.",
        "Traceback (most recent call last):",
        '  File "core.py", line 5, in step',
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.10 GiB.",
    )
)


def test_an_engine_error_counts_inside_the_window_only() -> None:
    ready = STARTUP + "(APIServer pid=11) INFO:     Application startup complete.\n"
    assert "CUDA out of memory" in went(ERROR, startup=ready)["engine_error"]
    assert went(periodic(1, 0), startup=ready + ERROR)["engine_error"] is None
    assert went(periodic(1, 0), startup=ready)["engine_error"] is None


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_servers_log_has_no_engine_error(name: str) -> None:
    report = report_of(name)
    if name != "h200_dflash_k3":  # it died later
        assert errors_between(report, report.ready_offset or 0, report.size_bytes) == []


def test_answers_cut_off() -> None:
    mixed = (request(0), request(1, "stop"), request(2, "stop"), request(3, "stop"))
    assert went(requests=mixed)["truncated_share"] == 0.25


def test_degenerate_answers_are_counted_among_those_looked_at() -> None:
    loop = "the cat sat " * 40
    requests = tuple(request(n, output=loop if n % 4 == 0 else "A fine answer to it.") for n in range(8))
    found = went(requests=requests)
    assert found["degenerate_share"] == 0.25
    assert "are a repetition" in found["degenerate_words"]
    assert went(requests=(request(),))["degenerate_words"] is None


def test_standstills_are_summed_up() -> None:
    chunk_s = (*(0.1 + 0.01 * n for n in range(50)), 3.0, 3.01, 7.0)
    found = went(requests=(request_factory.request(chunk_s=chunk_s),))
    assert found["stalled_s"] == pytest.approx(3.0 - 0.59 + 7.0 - 3.01)
    assert found["longest_stall_s"] == pytest.approx(7.0 - 3.01)
    assert went(requests=(request_factory.request(chunk_s=chunk_s[:50]),))["stalled_s"] == 0
    assert went()["stalled_s"] is None


def test_many_answers_are_sampled_evenly() -> None:
    loop = "the cat sat " * 40
    requests = tuple(request(n, output=loop if n >= 500 else "A fine answer to it.") for n in range(1000))
    assert went(requests=requests)["degenerate_share"] == pytest.approx(0.5, abs=0.05)


def test_others_processes_are_named(tmp_path: Path) -> None:
    others = [{"pid": n, "name": f"p{n}", "cpu_s": 9.0 - n} for n in range(5)]
    manifest = {"window": {}, "host_state": {"foreign_processes": others}}
    evidence = Evidence(tmp_path, manifest, (), (request(),), None, None, None)
    assert conduct(evidence, None, None, 1)[0]["foreign_words"] == "p0 9.0 s, p1 8.0 s, p2 7.0 s"
    assert went()["foreign_words"] is None


def test_what_the_scenario_asked_for() -> None:
    found = went(forced_length=True, nonce=False, random=True, temperature=0.7)
    assert (found["forced_length"], found["unique_prompts"]) == (True, False)
    assert (found["random_prompts"], found["temperature"]) == (True, 0.7)
    assert went()["forced_length"] is None
