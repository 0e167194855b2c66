"""Faults a test asks for: which of them strike at this boot, and which at this request."""

from __future__ import annotations

import os
from dataclasses import dataclass

from .settings import SettingsError, unknown

# Parameters of each kind with their defaults; None means "not given".
BOOT_KINDS: dict[str, dict[str, object]] = {
    "never_ready": {"log": True},
    "slow_start": {"s": 3.0, "log": True},
    "die_at_start": {"file": None, "cause": None, "exit_code": 1, "after_s": 0.0},
    "port_busy": {},
    "wrong_k": {"k_reported": 1},
    "ignore_sigterm": {},
    "slow_shutdown": {"s": 3.0},
    "leave_children": {},
    "metrics_skew": {"factor": 0.5},
}
REQUEST_KINDS: dict[str, dict[str, object]] = {
    "die_at_request": {"how": "engine", "cause": None, "exit_code": 0, "grace_s": 0.3},
    "oom_at_concurrency": {"exit_code": 0, "grace_s": 0.3},
    "http_500": {},
    "healthy_but_first_completion_fails": {},
    "hang_mid_stream": {"after_tokens": 1},
    "close_early": {"after_tokens": 1, "clean": False},
    "no_usage": {},
    "garbage_output": {"mode": "repetition"},
    "stall_log": {},
    "log_at_request": {"lines": None},
}
_CONDITIONS = {
    "method",
    "k",
    "max_model_len",
    "concurrency",
    "from_request",
    "every",
    "times",
    "contains",
    "once",
}


@dataclass
class Fault:
    """One fault that concerns this launch. `struck` counts how often it did."""

    kind: str
    params: dict
    conditions: dict
    struck: int = 0

    def strike(self) -> dict:
        """Hand out the parameters; remember the strike for this boot and (with `once`) for the next ones."""
        self.struck += 1
        if marker := self.conditions.get("once"):
            open(marker, "a").close()
        return self.params

    def meets(self, number: int, in_flight: int, prompt: str) -> bool:
        """Whether completion `number` of this boot, the `in_flight`-th at the moment, is one it strikes."""
        when = self.conditions
        past = number - when.get("from_request", 1)
        return (
            past >= 0
            and past % when.get("every", 1) == 0
            and self.struck < when.get("times", self.struck + 1)
            and in_flight >= when.get("concurrency", 0)
            and when.get("contains", "") in prompt
        )


class Faults:
    """All faults of a launch. Raises SettingsError for an unknown kind, parameter or condition."""

    def __init__(self, raw: list[dict], method: str, k: int, max_model_len: int) -> None:
        launch = {"method": method, "k": k, "max_model_len": max_model_len}
        faults = [_parse(entry) for entry in raw]
        self._active = [fault for fault in faults if _concerns(fault.conditions, launch)]

    def at_boot(self, kind: str) -> dict | None:
        """Parameters of a fault of this kind that strikes at this boot."""
        return next((fault.strike() for fault in self._active if fault.kind == kind), None)

    def at_request(self, number: int, in_flight: int, prompt: str) -> dict[str, dict]:
        """Parameters by kind of all faults that strike this completion."""
        return {
            fault.kind: fault.strike()
            for fault in self._active
            if fault.kind in REQUEST_KINDS and fault.meets(number, in_flight, prompt)
        }


def _parse(entry: dict) -> Fault:
    kinds = BOOT_KINDS | REQUEST_KINDS
    kind = entry.get("kind")
    if kind not in kinds:
        raise SettingsError(unknown("fault", str(kind), set(kinds)))
    params = dict(kinds[kind])
    conditions = {}
    for key, value in entry.items():
        if key in params:
            params[key] = value
        elif key in _CONDITIONS:
            conditions[key] = value
        elif key != "kind":
            raise SettingsError(unknown(f"key of fault {kind}", key, set(params) | _CONDITIONS))
    if kind == "oom_at_concurrency" and "concurrency" not in conditions:
        raise SettingsError(
            "fault oom_at_concurrency: give `concurrency`, the number of requests it cannot hold"
        )
    if kind == "healthy_but_first_completion_fails":
        kind, conditions = "http_500", {"times": 1} | conditions
    return Fault(kind, params, conditions)


def _concerns(conditions: dict, launch: dict) -> bool:
    for key, value in launch.items():
        legal = conditions.get(key, value)
        if value not in (legal if isinstance(legal, list) else [legal]):
            return False
    return not ("once" in conditions and os.path.exists(conditions["once"]))
