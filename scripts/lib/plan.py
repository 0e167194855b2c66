"""The text of `snakemake plan`: every server with its exact command, every cell with its state. Starts
nothing.
"""

from __future__ import annotations

import shlex
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from scripts.lib.cell import Cell, Server
from scripts.lib.feasibility import Finding
from scripts.lib.launch import Launch
from scripts.lib.launchers import typed
from scripts.lib.sweep import Sweep

WIDTH = 100
INFEASIBLE = "infeasible"


def render(sweep: Sweep, state_of: Callable[[Cell], str]) -> str:
    """The plan as text, at most WIDTH columns wide but for commands and single long words.

    `state_of` gives a cell's state in the store, e.g. finished, failed or pending; a cell that a feasibility
    rule refuses is shown as infeasible unless it is finished.
    """
    states = {cell: _state(sweep, cell, state_of(cell)) for cell in sweep.cells}
    by_server: dict[Server, list[Cell]] = {}
    for cell in sweep.cells:
        by_server.setdefault(cell.server, []).append(cell)
    lines = [_wrapped(f"warning: {warning}", "") for warning in sweep.warnings]
    for number, (server, cells) in enumerate(by_server.items(), 1):
        shared = sweep.server_findings(server)
        lines += ["", f"[{number}/{len(by_server)}] {server.path}", *_server_lines(sweep, server)]
        lines += _finding_lines(shared, "  ")
        lines += _cell_lines(sweep, cells, states, len(shared))
    return "\n".join([*lines, "", _totals(states.values(), len(by_server))]).lstrip("\n") + "\n"


def _state(sweep: Sweep, cell: Cell, stored: str) -> str:
    refused = any(finding.level == INFEASIBLE for finding in sweep.findings(cell))
    return INFEASIBLE if refused and stored != "finished" else stored


def _server_lines(sweep: Sweep, server: Server) -> list[str]:
    launch = sweep.launch(server)
    if launch.launcher == "external":
        return [f"  runs elsewhere at {launch.base_url}; nothing is started or stopped"]
    lines = []
    if launch.environment_names:
        lines.append(_wrapped("from your shell, where set: " + " ".join(launch.environment_names), "  "))
    lines += _command(launch)
    if launch.beside is not None:
        lines += [
            f"  and beside it {sweep.resolved(server).method.beside.label}:",
            *_command(launch.beside, port=8001),
        ]
    return lines


def _command(launch: Launch, port: int = 8000) -> list[str]:
    """The command that starts the server, variables and container included, broken between flags as a shell allows, so that it
    can be pasted."""
    lines, line = [], "  $"
    variables, argv = typed(launch, port)
    settings = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
    for group in (*settings, *flag_groups(argv)):
        if len(line) + 1 + len(group) + 2 > WIDTH and line.strip() != "$":
            lines.append(line + " \\")
            line = "     "
        line += " " + group
    return [*lines, line]


def flag_groups(argv: Sequence[str]) -> list[str]:
    """Quoted words, each flag together with its values, or with the first where they do not fit on a line; what precedes the first
    flag is one group."""
    groups: list[list[str]] = [[]]
    for word in argv:
        if word.startswith("-") and groups[-1]:
            groups.append([])
        groups[-1].append(word)
    parts = (
        [group] if len(shlex.join(group)) < WIDTH - 8 else [group[:2], *([word] for word in group[2:])]
        for group in groups
    )
    return [shlex.join(part) for group in parts for part in group]


def _cell_lines(sweep: Sweep, cells: list[Cell], states: dict[Cell, str], shared: int) -> list[str]:
    """One line a cell, then its findings but for the first `shared` ones, which are its server's."""
    lines = []
    width = max(len(_label(cell)) for cell in cells)
    for cell in cells:
        measure, warmup = sweep.requests_for(cell.concurrency)
        counts = f"{warmup} warm-up + {measure} measured requests"
        lines.append(f"    {_label(cell):<{width}}  {states[cell]:<10}  {counts}")
        lines += _finding_lines(sweep.findings(cell)[shared:], "      ")
    return lines


def _finding_lines(findings: Sequence[Finding], indent: str) -> list[str]:
    return [_wrapped(f"{finding.level}: {finding.message} [{finding.rule}]", indent) for finding in findings]


def _label(cell: Cell) -> str:
    return f"{cell.scenario}/c{cell.concurrency}/r{cell.repeat}"


def _totals(states: Iterable[str], servers: int) -> str:
    counts = Counter(states)
    known = [state for state in ("finished", "failed", "pending", INFEASIBLE) if state in counts]
    rest = sorted(counts.keys() - set(known))
    total = sum(counts.values())
    shown = ", ".join(f"{counts[state]} {state}" for state in (*known, *rest))
    return f"{total} cell{'s' * (total != 1)} on {servers} server{'s' * (servers != 1)}: {shown}"


def _wrapped(text: str, indent: str) -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
