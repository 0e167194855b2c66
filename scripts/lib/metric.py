"""What is said of one metric: its name, unit, direction and formula, and how its values are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ABSENT = "-"
"""How a value that is not there is printed; a zero is printed as 0."""

INTEGER, NUMBER, NUMBERS = "integer", "number", "numbers"
HIGHER, LOWER, NEUTRAL = "higher", "lower", "neutral"


@dataclass(frozen=True)
class Metric:
    """One metric. `better` is higher, lower or neutral; `decimals` is for reading only, stored values are
    never rounded.

    `label` names it on an axis, `short` in a table's header where that differs. `subject` groups metrics by
    where they come from: requests, answers, throughput, latency, acceptance, scheduler, memory, startup, power, host, client;
    comparison for those that need the baseline's cell."""

    name: str
    label: str
    unit: str
    better: str
    decimals: int
    formula: str
    subject: str
    kind: str = NUMBER
    short: str = ""

    @property
    def header(self) -> str:
        """Text for an axis, a legend or a caption: the label with its unit."""
        return f"{self.label} ({self.unit})" if self.unit else self.label

    @property
    def column(self) -> str:
        """Text for the header of a narrow table: the short label with its unit."""
        name = self.short or self.label
        return f"{name} ({self.unit})" if self.unit else name

    def text(self, value: float | Sequence[float] | None) -> str:
        """`value` rounded for reading, with thousands separators; ABSENT for None."""
        if value is None:
            return ABSENT
        if self.kind == NUMBERS:
            return " ".join(f"{part:.{self.decimals}f}" for part in value) or ABSENT
        return f"{value:,.{self.decimals}f}"
