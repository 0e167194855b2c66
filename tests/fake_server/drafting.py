"""How many tokens a step drafts and what it costs: always the same, or by the number of requests that run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .acceptance import Acceptance
from .settings import Settings

SettingsFor = Callable[[int], Settings]
"""Settings of the server's method with another k; those of `none` for 0."""


@dataclass
class Step:
    """Steps of one k: they share an accumulator of accepted lengths."""

    k: int
    settings: Settings
    acceptance: Acceptance = field(init=False)

    def __post_init__(self) -> None:
        self.acceptance = Acceptance(self.settings.acceptance, self.k)

    def seconds(self, running: int) -> float:
        return self.settings.step_s * (1 + self.settings.slope * (running - 1))


class Drafting:
    """vLLM's num_speculative_tokens_per_batch_size: [first, last, k], batch sizes between and after them keep the k before."""

    def __init__(self, k: int, settings: Settings, schedule: list | None, settings_for: SettingsFor) -> None:
        self._fixed = Step(k, settings)
        self._schedule = sorted((int(first), min(int(wanted), k)) for first, _, wanted in schedule or ())
        self._steps = {
            wanted: Step(wanted, settings_for(wanted)) for _, wanted in self._schedule if wanted != k
        }

    def at(self, running: int) -> Step:
        """The step that is taken while so many requests run."""
        if not self._schedule:
            return self._fixed
        wanted = [k for first, k in self._schedule if first <= max(1, running)]
        return self._steps.get(wanted[-1], self._fixed) if wanted else self._fixed
