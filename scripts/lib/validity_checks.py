"""The checks behind validity.py: each looks at one row and says in words what is wrong, or nothing.

A value that is None was not told by the server, or not kept by an earlier version: that proves nothing, so no check
fires on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from scripts.lib.cell import BASELINE
from scripts.lib.metrics import headline

UNFAIR, INVALID = "UNFAIR", "INVALID"
FAILED_STATUS = ("failed", "mislabelled", "damaged", "infeasible")
"""Statuses of rows without a usable result; each is the name of its own reason."""

_ENOUGH_LINES = 3
"""Periodic lines that show how many requests run: fewer may all have been printed while a batch was changing."""

_STATED_WHEN_SET = ("max_num_seqs", "max_num_batched_tokens")

Row = Mapping[str, object]


@dataclass(frozen=True)
class Case:
    """A row, the `none` row under the same conditions, a row of the `none` server, and the config's limits."""

    row: Row
    baseline: Row | None
    settings: Row | None
    limits: Mapping[str, object]

    def share_of(self, count: str, whole: str) -> float | None:
        """Ratio of two columns; None where one is absent or the whole is zero."""
        part, total = self.row[count], self.row[whole]
        return None if part is None or not total else part / total


@dataclass(frozen=True)
class Check:
    """`name` is stable: it stands in tables and may be filtered by. `meaning` completes "the cell is suspect when"."""

    name: str
    severity: str
    meaning: str
    find: Callable[[Case], str | None]


def incomplete(case: Case) -> str | None:
    share = case.share_of("completed", "requests")
    if share is None or share >= case.limits["min_completed_share"]:
        return None
    return f"{case.row['completed']} of {case.row['requests']} requests completed"


def no_tokens(case: Case) -> str | None:
    tokens = case.row["completion_tokens"]
    if tokens is None:
        return "the server did not say how many tokens it sent"
    return None if tokens > 0 else "the server sent no token"


def truncated(case: Case) -> str | None:
    share = case.row["truncated_share"]
    if case.row["forced_length"] is not False or share is None or share <= case.limits["max_truncated_share"]:
        return None
    return (
        f"{share:.0%} of the answers were cut off at max_tokens, so their length is not the model's: raise "
        "output.max_tokens, or force the length (ignore_eos) if that is meant"
    )


def short_window(case: Case) -> str | None:
    wall_s, least = case.row["wall_s"], case.limits["min_window_s"]
    if wall_s is None or wall_s >= least:
        return None
    return f"measured for {wall_s:.2f} s, less than {least:g} s: send more requests or longer ones"


def few_requests(case: Case) -> str | None:
    completed, least = (
        case.row["completed"],
        case.limits["min_requests_per_worker"] * case.row["concurrency"],
    )
    if completed is None or completed >= least:
        return None
    return f"{completed} requests at concurrency {case.row['concurrency']}, less than {least:g}"


def queueing(case: Case) -> str | None:
    """Requests that waited through most of the window, or far fewer running than asked for."""
    row, limits = case.row, case.limits
    running, asked = row["running_max"], row["running_asked"]
    if running is None or asked is None or running >= asked:
        return None
    waited = (row["waiting_share"] or 0) > limits["max_waiting_share"]
    few = running < limits["min_running_share"] * asked and row["busy_lines"] >= _ENOUGH_LINES
    if not waited and not few:
        return None
    return row["scheduler_words"] or f"{running} of {asked} run"


def preemptions(case: Case) -> str | None:
    count = case.row["preemptions"]
    if count is None or count <= case.limits["max_preemptions"]:
        return None
    return f"{count} times a running request lost its place in the KV cache and was computed anew"


def prefix_hits(case: Case) -> str | None:
    """Prompts that the server had seen before. What all requests share is the head of the chat template."""
    row, limits = case.row, case.limits
    share = row["prefix_hit_share"]
    if row["unique_prompts"] is not True or share is None or share <= limits["max_prefix_hit_share"]:
        return None
    length = case.share_of("prompt_tokens", "completed")
    if length is not None and share * length <= limits["prefix_head_tokens"]:
        return None
    return f"{share:.1%} of the prompt tokens came from the prefix cache, although no two prompts are alike"


def acceptance_disagrees(case: Case) -> str | None:
    return case.row["acceptance_alarm"]


def too_fast(case: Case) -> str | None:
    """Nothing is faster than k + 1 tokens a step, nor than the tokens that a step really put out."""
    row, baseline = case.row, case.baseline
    if row["method"] == BASELINE or baseline is None:
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


def degenerate(case: Case) -> str | None:
    """Answers that are none. With made-up acceptance nothing else is to be expected: drafts are kept unseen."""
    share = case.row["degenerate_share"]
    if case.row["synthetic"] or share is None or share <= case.limits["max_degenerate_share"]:
        return None
    return case.row["degenerate_words"] or f"{share:.0%} of the answers are no answers"


def engine_error(case: Case) -> str | None:
    return case.row["engine_error"]


def compiled_in_window(case: Case) -> str | None:
    count = case.row["compiled_in_window"]
    if count is None or count <= case.limits["max_compiled_in_window"]:
        return None
    return f"the server compiled {count} kernels while requests ran: warm up with more requests"


def cold_compile_cache(case: Case) -> str | None:
    """`same`: as the baseline's server; `warm`: always warm; `any`: not checked."""
    own, wanted = case.row["compile_cache"], case.limits["compile_cache"]
    if own is None or wanted == "any":
        return None
    if wanted == "warm":
        return "the server compiled its kernels in this start" if own == "cold" else None
    other = case.settings["compile_cache"] if case.settings else None
    if other is None or other == own:
        return None
    return f"the compile cache was {own}, that of `{BASELINE}` {other}"


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


def client_lag(case: Case) -> str | None:
    """Late for a first token's time, or for what a whole request takes: half to twice this share of the throughput."""
    row, limits, said = case.row, case.limits, []
    lag_s, share = row["client_lag_p99_s"], row["client_lag_share"]
    if lag_s is not None and 1000 * lag_s > limits["max_client_lag_ms"]:
        said.append(f"up to {1000 * lag_s:.0f} ms late (99th percentile)")
    if share is not None and share > limits["max_client_lag_share"]:
        said.append(f"late by up to {share:.1%} of a request")
    return f"the client noticed answers {', '.join(said)}: leave it a processor core" if said else None


def foreign_load(case: Case) -> str | None:
    """Somebody else's work on the machine: processor time, time that the hypervisor kept back, GPU time."""
    row, limits = case.row, case.limits
    cpu = [row[name] for name in ("foreign_cpu_share", "steal_share") if row[name] is not None]
    gpu, said = row["foreign_gpu_utilization"], []
    if cpu and sum(cpu) > limits["max_foreign_cpu_share"]:
        said.append(f"others took {sum(cpu):.0%} of the machine's processor time")
    if gpu is not None and gpu > limits["max_foreign_gpu_percent"]:
        said.append(f"others kept the server's GPUs {gpu:.0f} % busy")
    return "; ".join(said) or None


def partial_load(case: Case) -> str | None:
    share = case.row["full_load_share"]
    if share is None or share >= case.limits["min_full_load_share"]:
        return None
    return (
        f"only {share:.0%} of the window had {case.row['concurrency']} requests under way, so the total throughput is "
        "too low: send more requests"
    )


CHECKS = (
    Check("incomplete", INVALID, "less than min_completed_share of its requests completed", incomplete),
    Check("no_tokens", INVALID, "no token was sent, or the server did not count them", no_tokens),
    Check(
        "truncated",
        INVALID,
        "more than max_truncated_share of its answers ended at max_tokens although their length was free",
        truncated,
    ),
    Check("short_window", INVALID, "it was measured for less than min_window_s", short_window),
    Check(
        "few_requests",
        INVALID,
        "less than min_requests_per_worker x concurrency requests completed",
        few_requests,
    ),
    Check(
        "queueing",
        INVALID,
        "requests waited in more than max_waiting_share of the server's periodic lines while fewer ran than asked, "
        "or less than min_running_share of them ever ran at once",
        queueing,
    ),
    Check("preemptions", INVALID, "more than max_preemptions requests lost their KV cache", preemptions),
    Check(
        "prefix_hits",
        INVALID,
        "prompts with a nonce found more than max_prefix_hit_share of their tokens (and more than "
        "prefix_head_tokens each) in the prefix cache",
        prefix_hits,
    ),
    Check(
        "acceptance_disagrees",
        INVALID,
        "log, counters and chunks tell different acceptance",
        acceptance_disagrees,
    ),
    Check(
        "too_fast",
        INVALID,
        "it is over k + 1 times as fast as the baseline, or over its tokens per step by more than speed_tolerance",
        too_fast,
    ),
    Check(
        "degenerate",
        INVALID,
        "more than max_degenerate_share of its answers are empty, one word, a repetition or unreadable",
        degenerate,
    ),
    Check(
        "partial_load",
        INVALID,
        "as many requests as asked for were under way in less than min_full_load_share of the window",
        partial_load,
    ),
    Check(
        "foreign_load",
        INVALID,
        "others took more than max_foreign_cpu_share of the processors or max_foreign_gpu_percent of the GPUs",
        foreign_load,
    ),
    Check("engine_error", INVALID, "the engine reported an error in the window", engine_error),
    Check(
        "compiled_in_window",
        INVALID,
        "more than max_compiled_in_window kernels were compiled in the window",
        compiled_in_window,
    ),
    Check(
        "client_lag",
        INVALID,
        "the client was later than max_client_lag_ms or max_client_lag_share of a request (p99)",
        client_lag,
    ),
    Check(
        "cold_compile_cache",
        UNFAIR,
        "compile_cache asks for the same state as the baseline's (same) or a warm one (warm), and it is not",
        cold_compile_cache,
    ),
    Check(
        "unfair_settings",
        UNFAIR,
        "its server resolved one of fair_settings otherwise than the baseline's",
        unfair_settings,
    ),
)
"""In the order of their reasons."""
