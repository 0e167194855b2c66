"""Checks of the conditions: whether sources and physics agree, who disturbed the cell, and whether the baseline ran alike."""

from __future__ import annotations

from scripts.lib.cell import BASELINE
from scripts.lib.metrics import headline
from scripts.lib.validity_case import INVALID, UNFAIR, Case, Row, check

_STATED_WHEN_SET = ("max_num_seqs", "max_num_batched_tokens")


@check(INVALID, "log, counters and chunks tell different acceptance")
def acceptance_disagrees(case: Case) -> str | None:
    return case.row["acceptance_alarm"]


@check(
    INVALID,
    "it is over k + 1 times as fast as the baseline, or over its tokens per step by more than "
    "speed_tolerance",
)
def too_fast(case: Case) -> str | None:
    """Nothing is faster than k + 1 tokens a step, nor than the tokens that a step really put out."""
    row, baseline = case.row, case.baseline
    if row["k"] == 0 or baseline is None:
        return None
    name = headline(row["concurrency"])
    own, reference = row[name], baseline[name]
    if not own or not reference:
        return None
    ratio = own / reference
    if ratio > row["k"] + 1:
        return (
            f"{ratio:.2f} times the baseline, but k {row['k']} allows {row['k'] + 1}: one of the two is wrong"
        )
    length = row["tokens_per_step"] or row["acceptance_length"]
    if length is None or ratio <= length * (1 + case.limits["speed_tolerance"]):
        return None
    return f"{ratio:.2f} times the baseline with {length:.2f} tokens a step: one of the two is wrong"


@check(INVALID, "the engine reported an error in the window")
def engine_error(case: Case) -> str | None:
    return case.row["engine_error"]


@check(INVALID, "more than max_compiled_in_window kernels were compiled in the window")
def compiled_in_window(case: Case) -> str | None:
    count = case.row["compiled_in_window"]
    if count is None or count <= case.limits["max_compiled_in_window"]:
        return None
    return f"the server compiled {count} kernels while requests ran: warm up with more requests"


@check(INVALID, "the client was later than max_client_lag_ms or max_client_lag_share of a request (p99)")
def client_lag(case: Case) -> str | None:
    """Late for a first token's time, or for what a whole request takes: half to twice this share of the throughput."""
    row, limits, said = case.row, case.limits, []
    lag_s, share = row["client_lag_p99_s"], row["client_lag_share"]
    if lag_s is not None and 1000 * lag_s > limits["max_client_lag_ms"]:
        said.append(f"up to {1000 * lag_s:.0f} ms late (99th percentile)")
    if share is not None and share > limits["max_client_lag_share"]:
        said.append(f"late by up to {share:.1%} of a request")
    return f"the client noticed answers {', '.join(said)}: leave it a processor core" if said else None


@check(
    INVALID,
    "others took more than max_foreign_cpu_share of the processors or max_foreign_gpu_percent of the GPUs, or sent more "
    "than max_foreign_request_share of the requests",
)
def foreign_load(case: Case) -> str | None:
    """Somebody else's work on the machine: processor time, time that the hypervisor kept back, GPU time, requests."""
    row, limits = case.row, case.limits
    cpu = [row[name] for name in ("foreign_cpu_share", "steal_share") if row[name] is not None]
    gpu, said = row["foreign_gpu_utilization"], []
    if cpu and sum(cpu) > limits["max_foreign_cpu_share"]:
        who = f" ({row['foreign_words']})" if row["foreign_words"] else ""
        said.append(f"others took {sum(cpu):.0%} of the machine's processor time{who}")
    if gpu is not None and gpu > limits["max_foreign_gpu_percent"]:
        said.append(f"others kept the server's GPUs {gpu:.0f} % busy")
    sent = case.share_of("foreign_requests", "requests")
    if sent is not None and sent > limits["max_foreign_request_share"]:
        said.append(
            f"the server answered {row['foreign_requests']} requests of others beside the {row['requests']} of this cell"
        )
    return "; ".join(said) or None


@check(
    UNFAIR,
    "its server compiled its kernels in this start and the baseline's did not (compile_cache: same), or at all (warm)",
)
def cold_compile_cache(case: Case) -> str | None:
    """A cold start besides a warm baseline. The reverse is usual: `none` runs first and compiles for others too."""
    wanted = case.limits["compile_cache"]
    other = case.settings["compile_cache"] if case.settings else None
    if case.row["compile_cache"] != "cold" or wanted == "any" or (wanted == "same" and other != "warm"):
        return None
    than = f", that of `{BASELINE}` did not" if wanted == "same" else ""
    return f"the server compiled its kernels in this start{than}: forget the cell and run again"


@check(UNFAIR, "it was measured with another number of requests than the baseline")
def unequal_requests(case: Case) -> str | None:
    """Rows of other results folders: the prompts are mixed otherwise, and filling and draining the batch weighs otherwise. Nothing
    is known of other tools, whose rows have no key: one that measures by time asks more of what is faster."""
    row, baseline = case.row, case.baseline
    if baseline is None or None in (row["key"], baseline["key"]) or row["requests"] == baseline["requests"]:
        return None
    return f"{row['requests']} requests were sent ({BASELINE}: {baseline['requests']})"


@check(UNFAIR, "its server resolved one of fair_settings otherwise than the baseline's")
def unfair_settings(case: Case) -> str | None:
    if case.settings is None or case.row["method"] == BASELINE:
        return None
    differing = [
        f"{name} {_stated(case.row[name])} ({BASELINE}: {_stated(case.settings[name])})"
        for name in case.limits["fair_settings"]
        if case.row[name] != case.settings[name] and _both_known(name, case.row, case.settings)
    ]
    return ", ".join(differing) or None


def _both_known(name: str, row: Row, other: Row) -> bool:
    """Engines print some limits only where they are set: beside a log, silence about those means the default."""
    if name in _STATED_WHEN_SET and None not in (row["engine_version"], other["engine_version"]):
        return True
    return None not in (row[name], other[name])


def _stated(value: object) -> str:
    return "not set" if value is None else str(value)
