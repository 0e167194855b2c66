"""Rules that tell, before any start, that a server or cell cannot work or will not measure what it says.

SERVER_RULES and CELL_RULES list the functions of `feasibility_rules` and `feasibility_speculation` with the
engine versions each is known to hold for. A rule whose versions do not cover this engine's, or whose engine's
version is unknown, at most warns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from scripts.lib import feasibility_memory as memory
from scripts.lib import feasibility_rules as rules
from scripts.lib import feasibility_sglang as sglang
from scripts.lib import feasibility_speculation as speculation
from scripts.lib.feasibility_rules import Level, Verdict
from scripts.lib.resolve import Resolved
from scripts.lib.scenario import Scenario

Version = tuple[int, ...]


@dataclass(frozen=True)
class Finding:
    """What a rule says about a cell: `infeasible` cells are not started, `warning`s are shown."""

    rule: str
    level: Level
    message: str


ServerCheck = Callable[[Resolved], Verdict | None]
CellCheck = Callable[[Resolved, Scenario, int], Verdict | None]


@dataclass(frozen=True)
class Rule:
    """`since`: first engine version it holds for; `before`: first later one it does not (None = unbounded).

    `outside`: what it is worth on a known version out of that range. `kind`: the engine kind that it is about, None for all;
    such rules are about servers that the workflow starts. `any_engine`: it reads axes and files only and holds for servers
    that others run as well.
    """

    id: str
    check: ServerCheck | CellCheck
    since: Version | None = None
    before: Version | None = None
    outside: Literal["silent", "warning"] = "silent"
    kind: str | None = "vllm"
    any_engine: bool = False

    def concerns(self, kind: str, launcher: str) -> bool:
        return self.any_engine or (self.kind in (None, kind) and launcher != "external")


def check_server(resolved: Resolved) -> tuple[Finding, ...]:
    """Findings of the rules about a server as a whole."""
    return _apply(SERVER_RULES, resolved, lambda rule: rule.check(resolved))


def check_cell(resolved: Resolved, scenario: Scenario, concurrency: int) -> tuple[Finding, ...]:
    """Findings of the rules that also depend on the scenario or the concurrency."""
    return _apply(CELL_RULES, resolved, lambda rule: rule.check(resolved, scenario, concurrency))


def _apply(
    listed: tuple[Rule, ...], resolved: Resolved, run: Callable[[Rule], Verdict | None]
) -> tuple[Finding, ...]:
    engine = resolved.engine
    version = parse_version(engine.version)
    findings = []
    for rule in listed:
        if not rule.concerns(engine.kind, engine.launcher):
            continue
        sure = rule.any_engine or (rule.since is None and rule.before is None) or _holds(rule, version)
        if not sure and version is not None and rule.outside == "silent":
            continue
        verdict = run(rule)
        if verdict is None:
            continue
        if sure:
            findings.append(Finding(rule.id, verdict.level, verdict.message))
        else:
            note = f"known for {_range(rule)}, not checked for {engine.version or 'an unknown version'}"
            findings.append(Finding(rule.id, "warning", f"{verdict.message} ({note})"))
    return tuple(findings)


def parse_version(text: str | None) -> Version | None:
    """(0, 27, 1) for "0.27.1" and "0.27.1+cpu"; None for None."""
    if text is None:
        return None
    numbers = []
    for part in text.split("+")[0].split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)


def _holds(rule: Rule, version: Version | None) -> bool:
    if version is None:
        return False
    return (rule.since is None or version >= rule.since) and (rule.before is None or version < rule.before)


_NAMES = {"vllm": "vLLM", "sglang": "SGLang"}


def _range(rule: Rule) -> str:
    first = ".".join(map(str, rule.since or ())) or "the first release"
    last = f" to before {'.'.join(map(str, rule.before))}" if rule.before else " and later"
    return f"{_NAMES[rule.kind]} {first}{last}"


SERVER_RULES = (
    Rule("baseline-has-no-k", rules.k_of_baseline, any_engine=True),
    Rule("drafter-given", rules.drafter, kind=None),
    Rule("mtp-head-present", rules.mtp_head, kind=None),
    Rule("mtp-k-divisible", rules.mtp_divisible, since=(0, 9)),
    Rule("length-within-context", rules.model_context, any_engine=True),
    Rule("stochastic-rounding-dtype", rules.stochastic_rounding),
    Rule("dspark-block-size", rules.dspark_block),
    Rule("scheduled-tokens", rules.scheduled_tokens, since=(0, 20), before=(0, 28)),
    Rule("lookahead-fits-budget", rules.lookahead_fits, since=(0, 28)),
    Rule("budget-below-slots", rules.budget_below_slots),
    Rule("draft-model-supported", rules.draft_model_engine, since=(0, 10), before=(0, 15)),
    Rule("cpu-support", speculation.no_cpu_support, since=(0, 27), before=(0, 28), outside="warning"),
    Rule("runner-supports-method", speculation.runner, since=(0, 27), before=(0, 28), outside="warning"),
    Rule("block-verification", speculation.block_verification, since=(0, 27), outside="silent"),
    Rule(
        "async-scheduling-method",
        speculation.async_scheduling,
        since=(0, 27),
        before=(0, 28),
        outside="warning",
    ),
    Rule("synthetic-acceptance", speculation.synthetic, since=(0, 26), outside="warning"),
    Rule("drafter-ranks", speculation.drafter_ranks, since=(0, 16), outside="warning"),
    Rule("head-moe-backend", speculation.head_moe_backend, since=(0, 27), before=(0, 28), outside="warning"),
    Rule("lookup-window", speculation.lookup_window),
    Rule("k-schedule", speculation.k_schedule, since=(0, 26), outside="warning"),
    Rule("drafter-length", speculation.drafter_length),
    Rule("devices-given", rules.devices_given, kind=None),
    Rule("memory-utilization", memory.memory_utilization, kind=None),
    Rule("sglang-method", sglang.method_known, kind="sglang"),
    Rule("sglang-dspark", sglang.dspark_release, before=(0, 5, 16), kind="sglang"),
    Rule("sglang-synthetic", sglang.synthetic, kind="sglang"),
    Rule("sglang-keys", sglang.keys_without_flag, kind="sglang"),
    Rule("sglang-chain-length", sglang.chain_length, kind="sglang"),
)
CELL_RULES = (
    Rule("scenario-fits-length", rules.scenario_fits, any_engine=True),
    Rule("random-prompts", rules.random_prompts, any_engine=True),
    Rule("token-budget", rules.tokens_for_all),
    Rule("concurrency-within-slots", rules.slots),
    Rule("sglang-slots", sglang.slots, kind="sglang"),
)
