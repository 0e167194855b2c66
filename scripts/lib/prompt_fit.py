"""How much padding each prompt of a scenario with `input_tokens` needs, found by asking the server that will answer it.

No tokenizer is loaded: POST /tokenize counts where there is that page (vLLM, SGLang); elsewhere the usage of a completion of
one token does. What is found depends on tokenizer and chat template alone, so a boot's cells share it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scripts.lib import probe
from scripts.lib.prompt_files import Prompt
from scripts.lib.scenario import Phase, Scenario
from scripts.lib.words import unit_ends

TOLERANCE = 0.02
"""How far a prompt's length may be from the target, as a share of it."""

_TIMEOUT_S = 120.0
_GOOD_ENOUGH = 0.002
_FIRST_TRY, _GROWTH = 16, 16
_APPROACH = 0.98


class CannotFit(RuntimeError):
    """The target cannot be met on this server; the message says why and what to change."""


@dataclass(frozen=True)
class Fit:
    """`units` of padding make a prompt of `tokens` tokens, chat template and nonce included."""

    units: int
    tokens: int


@dataclass(frozen=True)
class ScenarioFit:
    """The fits by "phase/prompt id". `counted_by` is tokenize or completion."""

    target_tokens: int
    counted_by: str
    prompts: Mapping[str, Fit]

    @property
    def sizes(self) -> dict[tuple[str, str], int]:
        """As Scenario.requests takes them."""
        return {tuple(key.split("/", 1)): fit.units for key, fit in self.prompts.items()}

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def most_units(count: Callable[[int], int], units: int, target: int) -> Fit:
    """The largest amount of padding, up to `units`, with which `count(amount)` tokens are at most `target`.

    Within 0.2% below the target it stops looking. The target is approached from below, so that no prompt is tried that is
    much longer. Raises CannotFit when nothing lies within TOLERANCE of it.
    """
    below, beyond = Fit(0, count(0)), None
    empty = below.tokens
    if empty > target:
        if empty <= target * (1 + TOLERANCE):
            return below
        raise CannotFit(f"has {empty} tokens before any padding: shorten it or raise input_tokens ({target})")
    while target - below.tokens > target * _GOOD_ENOUGH and below.units < (beyond or units + 1) - 1:
        if beyond is not None:
            tried = (below.units + beyond) // 2
        elif below.tokens == empty:
            tried = min(below.units + _FIRST_TRY, units)
        else:
            per_unit = (below.tokens - empty) / below.units
            step = max(1, int((target - below.tokens) / per_unit * _APPROACH))
            tried = min(below.units + step, below.units * _GROWTH, units)
        tokens = count(tried)
        if tokens <= target:
            below = Fit(tried, tokens)
        else:
            beyond = tried
    if below.tokens >= target * (1 - TOLERANCE):
        return below
    if beyond is None:
        raise CannotFit(
            f"has {below.tokens} tokens with all padding there is, input_tokens asks for {target}: give a longer padding text"
        )
    raise CannotFit(
        f"jumps from {below.tokens} tokens past {target} with one more word of padding: use padding of shorter words"
    )


class TokenCounter:
    """Counts the tokens of a chat on a running server."""

    def __init__(self, base_url: str, model: str, api_key: str, template: Mapping[str, Any]):
        self.base_url = base_url
        self.api_key = api_key
        self.shared = {"model": model} | ({"chat_template_kwargs": dict(template)} if template else {})
        self.by_tokenize = True

    @property
    def way(self) -> str:
        return "tokenize" if self.by_tokenize else "completion"

    def find_way(self) -> None:
        """See whether the server counts without answering. Raises probe.Unreachable."""
        try:
            self.count([{"role": "user", "content": "Hello."}])
        except (probe.Refused, KeyError, TypeError, ValueError):  # no such page, or one that takes no chat
            self.by_tokenize = False

    def count(self, messages: Sequence[Mapping[str, str]]) -> int:
        """Tokens of a chat with its template.

        Raises probe.Unreachable, also for a server that has lost its engine; probe.Refused; KeyError, TypeError or ValueError
        for an answer without a count.
        """
        body = self.shared | {"messages": list(messages)}
        if self.by_tokenize:
            root = self.base_url.removesuffix("/v1")
            answer = self._post(f"{root}/tokenize", body | {"add_generation_prompt": True})
            return int(answer["count"])
        answer = self._post(f"{self.base_url}/chat/completions", body | {"max_tokens": 1, "temperature": 0})
        return int(answer["usage"]["prompt_tokens"])

    def _post(self, url: str, body: Mapping[str, Any]) -> Any:
        try:
            return json.loads(probe.request(url, body, _TIMEOUT_S, self.api_key))
        except probe.Refused as error:
            if error.status < 500 or error.status == 501:
                raise
            raise probe.Unreachable(str(error)) from None


def fit_scenario(
    scenario: Scenario, counts: Mapping[Phase, int], counter: TokenCounter, kept: Path
) -> ScenarioFit:
    """Fits for the prompts that so many requests of each phase use.

    `kept` is a file in which the cells of a boot, measured one at a time, leave each other what they found. Raises CannotFit
    and probe.Unreachable.
    """
    counter.find_way()
    if not counter.by_tokenize and not scenario.nonce:
        raise CannotFit(
            "the server has no /tokenize, and to count by completions would put the prompts of a scenario with nonce: false "
            "into its prefix cache: set nonce: true or leave input_tokens out"
        )
    known = _read(kept)
    fits = {key: Fit(**fit) for key, fit in known.get(scenario.sha256, {}).items()}
    for phase, count in counts.items():
        for prompt in scenario.in_rotation(phase, count):
            key = f"{phase}/{prompt.id}"
            fits[key] = fits.get(key) or _fit(scenario, phase, prompt, counter)
    known[scenario.sha256] = {key: asdict(fit) for key, fit in fits.items()}
    kept.write_text(json.dumps(known), encoding="utf-8")
    return ScenarioFit(scenario.input_tokens, counter.way, fits)


def _read(kept: Path) -> dict[str, Any]:
    """A file cut short by a kill is as good as none: what it held is found again."""
    try:
        return json.loads(kept.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}


def _fit(scenario: Scenario, phase: Phase, prompt: Prompt, counter: TokenCounter) -> Fit:
    # A nonce that no request has: counting by completions must not leave a measured prompt in the prefix cache.
    nonce = scenario.nonce_text("fit", 0, f"{phase}/{prompt.id}")

    def count(units: int) -> int:
        return counter.count(scenario.messages(phase, prompt, units, nonce))

    try:
        return most_units(count, len(unit_ends(scenario.padding_of(phase, prompt))), scenario.input_tokens)
    except CannotFit as error:
        raise CannotFit(f"prompt {prompt.id} of {scenario.name} {error}") from None
    except probe.Refused as error:
        raise CannotFit(f"the server does not count the tokens of prompt {prompt.id}: {error}") from None
    except (KeyError, TypeError, ValueError):
        raise CannotFit(f"the server's answers do not say how many tokens prompt {prompt.id} has") from None


def off_target(fit: ScenarioFit | None, prompt_tokens: Iterable[int | None]) -> str | None:
    """Why answered requests are not of the wanted length, by the server's own usage; None when they are or none was wanted."""
    if fit is None:
        return None
    target = fit.target_tokens
    low, high = math.ceil(target * (1 - TOLERANCE)), math.floor(target * (1 + TOLERANCE))
    wrong = sorted({count for count in prompt_tokens if count is not None and not low <= count <= high})
    if not wrong:
        return None
    seen = ", ".join(map(str, wrong[:5]))
    return f"the server's usage says prompts had {seen} tokens, where input_tokens {target} allows {low} to {high}"
