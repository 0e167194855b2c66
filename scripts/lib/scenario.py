"""Workload shapes: which requests a cell sends. Read from config/scenarios/NAME.yaml (docs/scenarios.md)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from scripts.lib import config_errors, padding
from scripts.lib.config import REPOSITORY, ConfigError, read_yaml
from scripts.lib.prompt_files import Prompt, find_beside, read_prompts

REQUEST_FORMAT = 2
"""Raised when the same scenario file turns into other requests; part of the content hash."""

NONCE_DIGITS = 12
"""Decimal digits, since every nonce of them has the same number of tokens: letters and digits mixed do not, by up to 5."""

PROSE = REPOSITORY / "config" / "scenarios" / "padding" / "prose.txt"
HELD_OUT = 2
"""Prompts at the end of a file, and further random ones, that warm up unless the scenario says otherwise."""

Phase = Literal["warmup", "measure"]
Sizes = Mapping[tuple[str, str], int]
"""Units of padding by (phase, prompt id)."""


@dataclass(frozen=True)
class Request:
    """`body` holds the arguments of the openai client's chat.completions.create, without model and stream
    options.
    """

    index: int
    prompt_id: str
    body: dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    """Prompts are sent in rotation; `max_tokens` and `min_tokens` count output tokens of one request.

    With `input_tokens` every prompt is filled up with padding until it has so many tokens, as the server counts: with the
    paragraphs of `padding`, or with random words where there is a `random_seed`.
    """

    name: str
    description: str
    prompts: tuple[Prompt, ...]
    warmup_prompts: tuple[Prompt, ...]
    max_tokens: int
    min_tokens: int | None
    ignore_eos: bool
    temperature: float
    top_p: float
    seed: int | None
    chat_template_kwargs: Mapping[str, Any]
    nonce: bool
    input_tokens: int | None = None
    padding: tuple[str, ...] = ()
    random_seed: int | None = None

    @property
    def sha256(self) -> str:
        """Digest of what decides the requests, the content of every file it reads included; name, description, comments and
        file names do not.
        """
        names = {field.name for field in fields(self)} - {"name", "description"}
        content = {name: getattr(self, name) for name in names}
        for key in ("prompts", "warmup_prompts"):
            content[key] = [vars(prompt) for prompt in content[key]]
        text = json.dumps([REQUEST_FORMAT, content], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def traits(self) -> dict[str, Any]:
        """What must be known of the scenario to judge what was measured with it, for the evidence.

        `forced_length`: the client did not leave the end of an answer to the model; `nonce`: no two prompts are alike.
        """
        return {
            "forced_length": self.ignore_eos or self.min_tokens is not None,
            "nonce": self.nonce,
            "random": self.random_seed is not None,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "input_tokens": self.input_tokens,
        }

    @cached_property
    def longest_by_output(self) -> Mapping[int, int]:
        """UTF-8 bytes of the longest prompt among those with the same max_tokens, by that number."""
        longest: dict[int, int] = {}
        for prompt in (*self.prompts, *self.warmup_prompts):
            limit = self.output_limit(prompt)
            longest[limit] = max(longest.get(limit, 0), prompt.size_bytes)
        return longest

    def requests(
        self, phase: Phase, count: int, salt: str, sizes: Sizes | None = None
    ) -> tuple[Request, ...]:
        """The first `count` requests of a phase. The same arguments give the same requests.

        `salt` must differ between measurements that could share a prefix cache; the nonce is derived from it. `sizes` are
        needed with `input_tokens` (prompt_fit.py finds them); a KeyError says that one is missing.
        """
        prompts = self.in_rotation(phase, count)
        return tuple(
            self._request(phase, index, prompts[index % len(prompts)], salt, sizes or {})
            for index in range(count)
        )

    def in_rotation(self, phase: Phase, count: int) -> tuple[Prompt, ...]:
        """The different prompts that the first `count` requests of a phase use."""
        return (self.prompts if phase == "measure" else self.warmup_prompts)[:count]

    def padding_of(self, phase: Phase, prompt: Prompt) -> str:
        """All the text there is to fill this prompt up with: other random words for each prompt, or every paragraph once,
        starting at another one for each prompt.
        """
        if self.random_seed is not None:
            return padding.random_words(f"{self.random_seed}/{phase}/{prompt.id}", self.input_tokens or 0)
        together = (*self.prompts, *self.warmup_prompts)
        place = (
            self.prompts.index(prompt) if phase == "measure" else together.index(prompt, len(self.prompts))
        )
        return padding.rotated(self.padding, place, len(together))

    def messages(self, phase: Phase, prompt: Prompt, units: int, nonce: str) -> list[dict[str, str]]:
        """A request's messages with so many units of padding. The nonce stands first, so that no prefix is shared."""
        text = prompt.text
        if self.input_tokens is not None:
            text = padding.fill(text, self.padding_of(phase, prompt), units)
        turns = [*prompt.earlier, ("user", text)]
        messages = [{"role": role, "content": content} for role, content in turns]
        messages[0]["content"] = nonce + messages[0]["content"]
        return messages

    def nonce_text(self, phase: str, index: int, salt: str) -> str:
        if not self.nonce:
            return ""
        digest = hashlib.sha256(f"{salt}|{phase}|{index}".encode()).digest()
        return f"[{int.from_bytes(digest) % 10**NONCE_DIGITS:0{NONCE_DIGITS}}] "

    def output_limit(self, prompt: Prompt) -> int:
        """max_tokens of the requests with this prompt."""
        return self.max_tokens if prompt.max_tokens is None else prompt.max_tokens

    def _request(self, phase: Phase, index: int, prompt: Prompt, salt: str, sizes: Sizes) -> Request:
        units = 0 if self.input_tokens is None else sizes[phase, prompt.id]
        limit = self.output_limit(prompt)
        body: dict[str, Any] = {
            "messages": self.messages(phase, prompt, units, self.nonce_text(phase, index, salt)),
            "max_tokens": limit,
            "temperature": self.temperature,
            "top_p": self.top_p,
        }
        if self.seed is not None:
            # One seed for all would make every repetition of a prompt answer alike.
            body["seed"] = self.seed + index
        extra: dict[str, Any] = {}
        if self.min_tokens is not None:
            extra["min_tokens"] = min(self.min_tokens, limit)
        if self.ignore_eos:
            extra["ignore_eos"] = True
        if self.chat_template_kwargs:
            extra["chat_template_kwargs"] = dict(self.chat_template_kwargs)
        return Request(index, prompt.id, body | ({"extra_body": extra} if extra else {}))


def load_scenario(path: Path) -> Scenario:
    """Read a scenario file and the files it names. Raises ConfigError naming the file, the key or line, and what is legal."""
    path = Path(path)
    data = config_errors.check(read_yaml(path), "scenario", str(path))
    output, sampling, target = data["output"], data["sampling"], data["input_tokens"]
    minimum = output["min_tokens"]
    if minimum is not None and minimum > output["max_tokens"]:
        raise ConfigError(
            f"{path}: output.min_tokens: {minimum} is more than max_tokens, {output['max_tokens']}"
        )
    prompts, warmup = _prompts(path, data)
    if data["random"] is None:
        _check_warmup(path, prompts, warmup)
    _check_lengths(path, (*prompts, *warmup), target)
    return Scenario(
        name=path.stem,
        description=data["description"],
        prompts=prompts,
        warmup_prompts=warmup,
        max_tokens=output["max_tokens"],
        min_tokens=minimum,
        ignore_eos=output["ignore_eos"],
        temperature=float(sampling["temperature"]),
        top_p=float(sampling["top_p"]),
        seed=sampling["seed"],
        chat_template_kwargs=data["chat_template_kwargs"],
        nonce=data["nonce"],
        input_tokens=target,
        padding=_padding(path, data),
        random_seed=data["random"]["seed"] if data["random"] else None,
    )


def _prompts(path: Path, data: Mapping[str, Any]) -> tuple[tuple[Prompt, ...], tuple[Prompt, ...]]:
    """Measured and warm-up prompts, out of the one source that the file names."""
    given = [key for key in ("prompts", "file", "random") if data.get(key) is not None]
    if not given:
        raise ConfigError(
            f"{path}: the key 'prompts' is missing; give prompts, or a file of prompts, or random prompts"
        )
    if len(given) > 1:
        raise ConfigError(f"{path}: {given[1]}: there is {given[0]} as well; leave one of them")
    for key in ("limit", "warmup_entries"):
        if data[key] is not None and given != ["file"]:
            raise ConfigError(f"{path}: {key}: is about a file of prompts, and no file is given; remove it")
    own = data.get("warmup_prompts")
    if given == ["random"]:
        return _random(path, data)
    if given == ["file"]:
        return _from_file(path, data, None if own is None else _named(own))
    if own is None:
        raise ConfigError(
            f"{path}: the key 'warmup_prompts' is missing (prompts of the same shape that are not measured)"
        )
    return _named(data["prompts"]), _named(own)


def _named(texts: Mapping[str, str]) -> tuple[Prompt, ...]:
    return tuple(Prompt(key, text.strip()) for key, text in texts.items())


def _from_file(
    path: Path, data: Mapping[str, Any], own: tuple[Prompt, ...] | None
) -> tuple[tuple[Prompt, ...], tuple[Prompt, ...]]:
    held_out = data["warmup_entries"] or HELD_OUT
    if own is not None and data["warmup_entries"] is not None:
        raise ConfigError(f"{path}: warmup_entries: there are warmup_prompts as well; leave one of them")
    source = find_beside(path, data["file"], "file")
    prompts = read_prompts(source, data["limit"])
    if own is not None:
        return prompts, own
    if len(prompts) <= held_out:
        raise ConfigError(
            f"{source}: has {len(prompts)} usable prompt{'s' * (len(prompts) != 1)}, of which the last {held_out} warm up and "
            f"are not measured: give more, or set warmup_entries or warmup_prompts in {path}"
        )
    return prompts[:-held_out], prompts[-held_out:]


def _random(path: Path, data: Mapping[str, Any]) -> tuple[tuple[Prompt, ...], tuple[Prompt, ...]]:
    """Prompts that are nothing but padding."""
    if data["input_tokens"] is None:
        raise ConfigError(f"{path}: the key 'input_tokens' is missing; it says how long random prompts are")
    if "warmup_prompts" in data:
        raise ConfigError(f"{path}: warmup_prompts: random prompts warm up with random prompts; remove it")
    count = data["random"]["prompts"]
    made = tuple(Prompt(f"{number:04}", padding.PLACE) for number in range(1, count + HELD_OUT + 1))
    return made[:count], made[count:]


def _check_warmup(path: Path, prompts: tuple[Prompt, ...], warmup: tuple[Prompt, ...]) -> None:
    def content(prompt: Prompt) -> Prompt:
        return replace(prompt, id="", max_tokens=None)

    seen: dict[Prompt, str] = {content(prompt): "a measured prompt is among them" for prompt in prompts}
    for prompt in warmup:
        if said := seen.get(content(prompt)):
            raise ConfigError(
                f"{path}: warmup_prompts: {said} ({prompt.id}: {prompt.text[:40]!r}); use others"
            )
        seen[content(prompt)] = "a prompt is among them twice"


def _check_lengths(path: Path, prompts: tuple[Prompt, ...], target: int | None) -> None:
    """Refuse what no tokenizer could save: UTF-8 bytes / 8 is less than any gives (see feasibility_rules)."""
    for prompt in prompts:
        least = prompt.size_bytes // 8
        if target is None and padding.PLACE in prompt.text:
            raise ConfigError(
                f"{path}: prompt {prompt.id}: {padding.PLACE} is filled up to input_tokens, which is not given"
            )
        if target is not None and least > target:
            raise ConfigError(
                f"{path}: input_tokens: prompt {prompt.id} alone has at least {least} tokens, which is over {target}"
            )


def _padding(path: Path, data: Mapping[str, Any]) -> tuple[str, ...]:
    named = data["padding"]
    if data["input_tokens"] is None or data["random"] is not None:
        if named is not None:
            why = (
                "random prompts have their own" if data["random"] is not None else "input_tokens is not given"
            )
            raise ConfigError(f"{path}: padding: {why}; remove it")
        return ()
    return padding.read_paragraphs(PROSE if named is None else find_beside(path, named, "padding"))
