"""From the axes of a config to the cells to measure, in the order in which they are measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from scripts.lib.cell import AXES, BASELINE, Cell, Server
from scripts.lib.config import ConfigError, nearest
from scripts.lib.merge import matches
from scripts.lib.methods import Method

SERVER_AXES = ("hardware", "engine", "model", "max_model_len")
"""Axes of a server that vary freely; method and k go together."""


@dataclass(frozen=True)
class Matrix:
    """`cells` in measurement order; `warnings` name rules that have no effect."""

    cells: tuple[Cell, ...]
    warnings: tuple[str, ...] = field(default=())


def expand(config: Mapping[str, Any], methods: Sequence[Method], may_be_empty: bool = False) -> Matrix:
    """All combinations, less those an `exclude` rule matches, plus those an `include` rule names.

    Raises ConfigError for an include rule that can name no cell, and for a matrix without cells unless it may be empty.
    """
    values = _axis_values(config, methods)
    cells = dict.fromkeys(_product(values, _method_ks(methods)))
    warnings = []
    for index, rule in enumerate(config["exclude"]):
        warnings += _unknown_values(rule, values, f"exclude[{index}]")
        dropped = [cell for cell in cells if matches(rule, cell.axes)]
        if not dropped:
            warnings.append(f"exclude[{index}]: matches no cell: {_rule_text(rule)}")
        for cell in dropped:
            del cells[cell]
    for index, rule in enumerate(config["include"]):
        added = list(_included(rule, values, methods, f"include[{index}]"))
        if not added:
            raise ConfigError(
                f"config: include[{index}]: names no possible cell: {_rule_text(rule)} ({BASELINE} has k 0)"
            )
        if cells.keys() >= set(added):
            warnings.append(f"include[{index}]: adds no cell that is not there already: {_rule_text(rule)}")
        cells.update(dict.fromkeys(added))
    if not cells and not may_be_empty:
        raise ConfigError("config: exclude: the rules leave no cell to measure; remove one of them")
    for index, override in enumerate(config["overrides"]):
        if not any(_server_matches(override["when"], server) for server in {cell.server for cell in cells}):
            warnings.append(f"overrides[{index}].when: matches no server: {_rule_text(override['when'])}")
    return Matrix(_in_order(cells, values, methods), tuple(warnings))


def _axis_values(config: Mapping[str, Any], methods: Sequence[Method]) -> dict[str, list[Any]]:
    values = {axis: list(config[axis]) for axis in ("hardware", "engine", "model", "max_model_len")}
    values["method"] = [method.name for method in methods]
    values["k"] = list(dict.fromkeys(k for _, k in _method_ks(methods)))
    values["scenario"] = list(config["scenario"])
    values["concurrency"] = list(config["concurrency"])
    values["repeat"] = list(range(1, config["repeats"] + 1))
    return values


def _method_ks(methods: Iterable[Method]) -> list[tuple[str, int]]:
    return [(method.name, k) for method in methods for k in (method.k or (0,))]


def _product(values: Mapping[str, Sequence[Any]], method_ks: Sequence[tuple[str, int]]) -> Iterator[Cell]:
    servers = [
        Server(hardware, engine, model, method, k, length)
        for hardware, engine, model, length in product(*(values[axis] for axis in SERVER_AXES))
        for method, k in method_ks
    ]
    for server, repeat, scenario, concurrency in product(
        servers, values["repeat"], values["scenario"], values["concurrency"]
    ):
        yield Cell(server, scenario, concurrency, repeat)


def _included(
    rule: Mapping[str, Any], values: Mapping[str, list[Any]], methods: Sequence[Method], place: str
) -> Iterator[Cell]:
    """The cells an include rule names; axes it leaves out keep the matrix's values."""
    named = {axis: _as_list(value) for axis, value in rule.items()}
    for name in named.get("method", ()):
        if name not in values["method"]:
            raise ConfigError(
                f"config: {place}.method: {name!r} is not under `method`{nearest(name, values['method'])}"
            )
    for axis in ("max_model_len", "concurrency", "repeat"):
        if 0 in named.get(axis, ()):
            raise ConfigError(f"config: {place}.{axis}: 0 is less than 1, the smallest legal value")
    chosen = [method for method in methods if method.name in named.get("method", values["method"])]
    method_ks = [
        (method.name, k)
        for method in chosen
        for k in named.get("k", method.k or (0,))
        if (k == 0) == (method.kind == BASELINE)
    ]
    yield from _product({axis: named.get(axis, values[axis]) for axis in AXES}, method_ks)


def _in_order(
    cells: Iterable[Cell], values: Mapping[str, list[Any]], methods: Sequence[Method]
) -> tuple[Cell, ...]:
    """Repeats outermost, so that a drift of the machine falls on all servers; then by the config's own order,
    all methods at one length before the next length; within a boot by Cell.turn."""
    cells = list(cells)
    rank: dict[str, dict[Any, int]] = {}
    for axis in ("hardware", "engine", "model", "max_model_len", "method"):
        seen = dict.fromkeys(values[axis]) | dict.fromkeys(getattr(cell.server, axis) for cell in cells)
        rank[axis] = {value: index for index, value in enumerate(seen)}
    order = {method.name: {k: index for index, k in enumerate(method.k)} for method in methods}

    def server_key(server: Server) -> tuple[int, ...]:
        k = order[server.method].get(server.k, len(order[server.method]) + server.k)
        ranks = [
            rank[axis][getattr(server, axis)]
            for axis in ("hardware", "engine", "model", "max_model_len", "method")
        ]
        return (*ranks, k)

    keys = {server: server_key(server) for server in dict.fromkeys(cell.server for cell in cells)}
    return tuple(sorted(cells, key=lambda cell: (cell.repeat, keys[cell.server], cell.turn)))


def _unknown_values(rule: Mapping[str, Any], values: Mapping[str, list[Any]], place: str) -> Iterator[str]:
    for axis, given in rule.items():
        for value in _as_list(given):
            if value not in values[axis]:
                yield f"{place}.{axis}: {value!r} is no value of this axis{nearest(value, values[axis])}"


def _server_matches(when: Mapping[str, Any], server: Server) -> bool:
    # The engine's kind is not known here; load_sweep checks its spelling.
    return matches({axis: value for axis, value in when.items() if axis != "engine_kind"}, vars(server))


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]


def _rule_text(rule: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{axis}: {value}" for axis, value in rule.items()) + "}"
