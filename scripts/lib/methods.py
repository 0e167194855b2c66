"""The speculative methods: which need a drafter, and what drafting takes from the scheduler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scripts.lib.cell import BASELINE
from scripts.lib.config import ConfigError, nearest
from scripts.lib.settings import check_settings


@dataclass(frozen=True)
class MethodKind:
    """`drafter`: a second checkpoint that the method needs (True) or must not be given (False).

    `parallel`: all k tokens are drafted in one pass, with k - 1 masked slots a request.
    `draft_model`: one more slot a request, because the draft tokens are not sliced.
    """

    drafter: bool
    parallel: bool = False
    draft_model: bool = False


METHOD_KINDS: dict[str, MethodKind] = {
    BASELINE: MethodKind(drafter=False),
    "mtp": MethodKind(drafter=False),
    "eagle": MethodKind(drafter=True),
    "eagle3": MethodKind(drafter=True),
    "draft_model": MethodKind(drafter=True, draft_model=True),
    "dspark": MethodKind(drafter=True, parallel=True),
    "dflash": MethodKind(drafter=True, parallel=True),
    "ngram": MethodKind(drafter=False),
    "ngram_gpu": MethodKind(drafter=False),
    "suffix": MethodKind(drafter=False),
}


@dataclass(frozen=True)
class Beside:
    """A second server on the same device. `engine` and `max_model_len` are the first one's where None; it is kept busy with
    `concurrency` requests of `scenario`, or left idle at 0."""

    model: str
    scenario: str
    concurrency: int
    method: str = BASELINE
    k: int = 0
    engine: str | None = None
    max_model_len: int | None = None
    speculative_config: Mapping[str, Any] = field(default_factory=dict)
    flags: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """A short name for tables, e.g. `nano mtp k3, chat_short at 4`."""
        k = f" k{self.k}" if self.k else ""
        load = f"{self.scenario} at {self.concurrency}" if self.concurrency else "idle"
        return f"{self.model} {self.method}{k}, {load}"


@dataclass(frozen=True)
class Method:
    """One entry of the config's `method` list. `k` is empty for the baseline. `stands_for`: the entry whose flags and
    overrides it shares, for one that the workflow made itself."""

    name: str
    kind: str
    k: tuple[int, ...]
    speculative_config: Mapping[str, Any]
    flags: Mapping[str, Any]
    environment: Mapping[str, Any]
    stands_for: str | None = None
    beside: Beside | None = None


def read_methods(entries: Sequence[Mapping[str, Any]]) -> list[Method]:
    """The config's `method` list, already checked against the schema.

    Raises ConfigError for a method that does not exist, a k missing or out of place, or a repeated name.
    """
    methods = [_method(entry, f"config: method[{index}]") for index, entry in enumerate(entries)]
    _refuse_repeated([method.name for method in methods])
    return methods


def _method(entry: Mapping[str, Any], place: str) -> Method:
    name = entry["name"]
    kind = entry.get("method", name)
    if kind not in METHOD_KINDS:
        raise ConfigError(
            f"{place}.name: there is no method {name!r}{nearest(name, METHOD_KINDS)} "
            "(a name of your own needs the key `method` beside it)"
        )
    if name in METHOD_KINDS and kind != name:
        raise ConfigError(f"{place}.name: {name!r} is itself a method; choose another name for this {kind!r}")
    ks = tuple(entry.get("k", ()))
    if kind == BASELINE and "k" in entry:
        raise ConfigError(f"{place}.k: {BASELINE} does not speculate and has no k; remove this key")
    if kind == BASELINE and entry.get("speculative_config"):
        raise ConfigError(f"{place}.speculative_config: {BASELINE} does not speculate; remove this key")
    if kind != BASELINE and not ks:
        raise ConfigError(
            f"{place}.k: is missing; give the numbers of speculative tokens to measure, e.g. k: [3]"
        )
    check_settings(entry, f"{place}.")
    keys = entry.get("speculative_config", {})
    beside = _beside(entry.get("beside"), f"{place}.beside")
    if beside is not None and name in METHOD_KINDS:
        raise ConfigError(
            f"{place}.name: {name!r} with another server beside it needs a name of its own and the key `method`"
        )
    return Method(name, kind, ks, keys, entry["flags"], entry["environment"], beside=beside)


def _beside(entry: Mapping[str, Any] | None, place: str) -> Beside | None:
    if entry is None:
        return None
    method, k = entry["method"], entry["k"]
    if (method == BASELINE) != (k == 0):
        raise ConfigError(
            f"{place}.k: {k} for {method}: {BASELINE} has k 0, every other method needs 1 or more"
        )
    check_settings(entry, f"{place}.")
    return Beside(**entry)


def _refuse_repeated(names: Sequence[str]) -> None:
    for index, name in enumerate(names):
        if name in names[:index]:
            raise ConfigError(
                f"config: method[{index}].name: {name!r} is given twice; list its k together, "
                "or give one of them a name of its own and the key `method`"
            )
