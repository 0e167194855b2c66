"""Checks of what became of the requests: enough of them, all answered, all at once, none of them helped."""

from __future__ import annotations

from scripts.lib.validity_case import INVALID, Case, check

_ENOUGH_LINES = 3
"""Periodic lines that show how many requests run: fewer may all have been printed while a batch was changing."""


@check(INVALID, "less than min_completed_share of its requests completed")
def incomplete(case: Case) -> str | None:
    share = case.share_of("completed", "requests")
    if share is None or share >= case.limits["min_completed_share"]:
        return None
    return f"{case.row['completed']} of {case.row['requests']} requests completed"


@check(INVALID, "no token was sent, or the server did not count them")
def no_tokens(case: Case) -> str | None:
    tokens = case.row["completion_tokens"]
    if tokens is None:
        return "the server did not say how many tokens it sent"
    return None if tokens > 0 else "the server sent no token"


@check(
    INVALID,
    "more than max_truncated_share of its answers ended at max_tokens although their length was free",
)
def truncated(case: Case) -> str | None:
    share = case.row["truncated_share"]
    if case.row["forced_length"] is not False or share is None or share <= case.limits["max_truncated_share"]:
        return None
    return (
        f"{share:.0%} of the answers were cut off at max_tokens, so their length is not the model's: raise "
        "output.max_tokens, or force the length (ignore_eos) if that is meant"
    )


@check(INVALID, "it was measured for less than min_window_s")
def short_window(case: Case) -> str | None:
    wall_s, least = case.row["wall_s"], case.limits["min_window_s"]
    if wall_s is None or wall_s >= least:
        return None
    return f"measured for {wall_s:.2f} s, less than {least:g} s: send more requests or longer ones"


@check(INVALID, "less than min_requests_per_worker x concurrency requests completed")
def few_requests(case: Case) -> str | None:
    completed, least = (
        case.row["completed"],
        case.limits["min_requests_per_worker"] * case.row["concurrency"],
    )
    if completed is None or completed >= least:
        return None
    return f"{completed} requests at concurrency {case.row['concurrency']}, less than {least:g}"


@check(INVALID, "as many requests as asked for were under way in less than min_full_load_share of the window")
def partial_load(case: Case) -> str | None:
    share = case.row["full_load_share"]
    if share is None or share >= case.limits["min_full_load_share"]:
        return None
    return (
        f"only {share:.0%} of the window had {case.row['concurrency']} requests under way, so the total throughput is "
        "too low: send more requests"
    )


@check(
    INVALID, "no token came in more than max_stalled_share of the window while requests were being answered"
)
def stalled(case: Case) -> str | None:
    share = case.share_of("stalled_s", "wall_s")
    if share is None or share <= case.limits["max_stalled_share"]:
        return None
    total_s, longest_s = case.row["stalled_s"], case.row["longest_stall_s"]
    each = f", up to {longest_s:.1f} s at a time" if longest_s < total_s else ""
    return (
        f"no token for {total_s:.1f} of {case.row['wall_s']:.1f} s while requests were running{each}: "
        "the engine stood still"
    )


@check(
    INVALID,
    "requests waited in more than max_waiting_share of the server's periodic lines while fewer ran "
    "than asked, or less than min_running_share of them ever ran at once",
)
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


@check(INVALID, "more than max_preemptions requests lost their KV cache")
def preemptions(case: Case) -> str | None:
    count = case.row["preemptions"]
    if count is None or count <= case.limits["max_preemptions"]:
        return None
    return f"{count} times a running request lost its place in the KV cache and was computed anew"


@check(
    INVALID,
    "prompts with a nonce found more than max_prefix_hit_share of their tokens (and more than "
    "prefix_head_tokens each) in the prefix cache",
)
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


@check(
    INVALID,
    "more than max_degenerate_share of its answers are empty, one word, a repetition or unreadable",
)
def degenerate(case: Case) -> str | None:
    """Answers that are none. With made-up acceptance nothing else is to be expected: drafts are kept unseen."""
    share = case.row["degenerate_share"]
    if case.row["synthetic"] or share is None or share <= case.limits["max_degenerate_share"]:
        return None
    return case.row["degenerate_words"] or f"{share:.0%} of the answers are no answers"
