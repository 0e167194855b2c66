"""The text of `snakemake why`: for every cell that is still to be measured, what made it so."""

from __future__ import annotations

import textwrap

from scripts.lib.cell import Cell
from scripts.lib.planning import Plan
from scripts.lib.store import Difference, State, damage, differences, read_manifest

_WIDTH = 100


def render(plan: Plan) -> str:
    """One paragraph per pending cell; names every component of the identity that differs from the newest evidence."""
    pending = [cell for cell in plan.feasible if not plan.state(cell).finished]
    if not pending:
        return f"Nothing is due: all {len(plan.feasible)} feasible cells are in the cell store {plan.store.root}.\n"
    lines = [f"{len(pending)} of {len(plan.feasible)} feasible cells are due:", ""]
    for cell in pending:
        lines.append(cell.path)
        for reason in reasons(plan, cell):
            lines += textwrap.wrap(reason, _WIDTH, initial_indent="  ", subsequent_indent="    ")
    return "\n".join(lines) + "\n"


def reasons(plan: Plan, cell: Cell) -> list[str]:
    """Why this cell is due, in words."""
    state = plan.state(cell)
    folder = plan.store.folder(cell, plan.key(cell))
    if state is State.DAMAGED:
        return [f"its evidence is damaged: {damage(folder) or 'it belongs to another key'} ({folder})"]
    if state is State.RETRY:
        failure = read_manifest(folder)["failure"]
        if failure is None:
            return ["many of its requests failed; it is measured once more"]
        return [f"it failed and is tried again ({failure['class']}): {failure['cause']}"]
    others = plan.store.others(cell, plan.key(cell))
    if not others:
        return ["it was never measured"]
    newest, identity = others[0]
    found = [_words(difference) for difference in differences(identity, plan.identity(cell))]
    return [f"it was measured under other conditions ({newest.name}):", *found]


def _words(difference: Difference) -> str:
    if isinstance(difference.stored, list) and isinstance(difference.wanted, list):
        gone = [str(part) for part in difference.stored if part not in difference.wanted]
        new = [str(part) for part in difference.wanted if part not in difference.stored]
        return f"{difference.component}: without {' '.join(gone) or 'nothing'}, with {' '.join(new) or 'nothing'}"
    return f"{difference.component}: was {_short(difference.stored)}, is {_short(difference.wanted)}"


def _short(value: object) -> str:
    if value is None:
        return "not there"
    text = str(value)
    return text if len(text) <= 120 else text[:117] + "..."
