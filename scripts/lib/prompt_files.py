"""Prompts out of a user's file: JSON lines, or one JSON list, in the layouts that people have (docs/scenarios.md).

Every entry becomes one request. A conversation is sent up to the first user turn whose answer is not in the file: what
would follow depends on an answer that nobody has yet.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.lib.config import ConfigError, type_name

ROLES = ("system", "developer", "user", "assistant", "tool")
SHAREGPT_USERS = ("human", "user")
UNRESOLVED = "FULL BENCHMARK DATA SHOULD BE FETCHED"
"""How SPEED-Bench's public files mark a prompt whose text has to be fetched with the data set's own script."""
LIMITS = ("max_tokens", "output_tokens")
_SOURCES = ("messages", "turns", "conversations", "prompt")


@dataclass(frozen=True)
class Prompt:
    """What one request asks. `text` is the last user turn, `earlier` the (role, content) pairs before it; `max_tokens`
    replaces the scenario's.
    """

    id: str
    text: str
    earlier: tuple[tuple[str, str], ...] = ()
    max_tokens: int | None = None

    @property
    def size_bytes(self) -> int:
        """UTF-8 bytes of all that is said."""
        return sum(
            len(text.encode(errors="replace")) for text in (self.text, *(text for _, text in self.earlier))
        )


def find_beside(scenario: Path, name: str, key: str) -> Path:
    """The file `name` beside the scenario's file, else in the working directory. Raises ConfigError."""
    given = Path(os.path.expanduser(name))
    places = list(dict.fromkeys((scenario.parent / given, given)))
    for place in places:
        try:
            if place.is_file():
                return place
        except OSError:  # a name that no file can have
            continue
    looked = " nor ".join(str(place) for place in places)
    raise ConfigError(f"{scenario}: {key}: there is no file {looked}")


def read_text(path: Path) -> str:
    """Raises ConfigError for a file that cannot be read or is no UTF-8, with the line."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}, line {line}: not UTF-8 text; save the file as UTF-8") from None


def read_prompts(path: Path, limit: int | None) -> tuple[Prompt, ...]:
    """The first `limit` prompts of a file, all when None; ids are their numbers. Raises ConfigError with file and line."""
    found: list[Prompt] = []
    for where, entry in _entries(path, read_text(path)):
        prompt = _prompt(entry, where, f"{len(found) + 1:04}")
        if prompt is not None:
            found.append(prompt)
        if len(found) == limit:
            break
    if not found:
        raise ConfigError(f"{path}: has no prompt; give one JSON object a line, with messages or prompt")
    return tuple(found)


def _entries(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """(place for people, parsed entry) of JSON lines, or of the elements of one JSON list."""
    if text.lstrip().startswith("["):
        try:
            listed = json.loads(text)
        except (ValueError, RecursionError) as error:
            line = getattr(error, "lineno", 1)
            raise ConfigError(f"{path}, line {line}: no JSON ({_short(error)})") from None
        yield from ((f"{path}, entry {number}", entry) for number, entry in enumerate(listed, 1))
        return
    # Not splitlines(): prompts may hold line separators that JSON does not escape.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ConfigError(
                f"{path}, line {number}: no JSON ({_short(error)}); each line is one object with messages or prompt"
            ) from None
        yield f"{path}, line {number}", entry


def _short(error: Exception) -> str:
    return str(error).split("\n")[0][:100]


def _prompt(entry: Any, where: str, number: str) -> Prompt | None:
    """None for a ShareGPT conversation in which no human says anything: the public file has thousands of them."""
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{where}: an object with messages or prompt is needed, not {type_name(entry)}")
    _refuse_misspelt(entry, where)
    source = next((key for key in _SOURCES if entry.get(key) is not None), None)
    if source is None:
        raise ConfigError(f"{where}: has neither messages nor prompt (known as well: turns, conversations)")
    turns = _TURNS[source](entry[source], where)
    if not turns:
        return None
    *earlier, (_, text) = turns
    if text.startswith(UNRESOLVED):
        raise ConfigError(
            f"{where}: holds the placeholder of a prompt, not the prompt; run the data set's own script to fetch it"
        )
    return Prompt(number, text, tuple(earlier), _limit(entry, where))


def _refuse_misspelt(entry: Mapping[str, Any], where: str) -> None:
    """Further keys are a data set's own; one that nearly is one of ours would be ignored unseen."""
    known = (*_SOURCES, *LIMITS)
    for key in entry:
        if key not in known and (near := difflib.get_close_matches(str(key).lower(), known, 1, 0.9)):
            raise ConfigError(f"{where}: unknown key {key!r}; did you mean {near[0]!r}?")


def _limit(entry: Mapping[str, Any], where: str) -> int | None:
    given = [(key, entry[key]) for key in LIMITS if entry.get(key) is not None]
    for key, value in given:
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigError(
                f"{where}: {key}: {value!r} is no number of tokens; give an integer of 1 or more"
            )
    return given[0][1] if given else None


def _of_messages(messages: Any, where: str) -> list[tuple[str, str]]:
    """OpenAI's layout; SPEED-Bench as its script writes it has user turns alone."""
    if not isinstance(messages, Sequence) or isinstance(messages, str) or not messages:
        raise ConfigError(f"{where}: messages: give a list of objects with role and content")
    turns = [_message(message, f"{where}: messages[{index}]") for index, message in enumerate(messages)]
    for index, (role, _) in enumerate(turns):
        if role == "user" and [role for role, _ in turns[index + 1 : index + 2]] not in (
            ["assistant"],
            ["tool"],
        ):
            return turns[: index + 1]
    while turns and turns[-1][0] != "user":
        turns.pop()
    if not turns:
        raise ConfigError(f"{where}: messages: none of them is a user's; there is nothing to answer")
    return turns


def _message(message: Any, where: str) -> tuple[str, str]:
    if not isinstance(message, Mapping) or "role" not in message:
        raise ConfigError(f"{where}: give an object with role and content")
    role, content = message["role"], message.get("content")
    if role not in ROLES:
        raise ConfigError(f"{where}.role: {role!r} is not known; known: {', '.join(ROLES)}")
    if isinstance(content, list) and all(
        isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str)
        for part in content
    ):
        content = "\n".join(part["text"] for part in content)
    return role, _text(content, f"{where}.content")


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{where}: only text can be sent, not {type_name(value)}")
    if not value.strip():
        raise ConfigError(f"{where}: is empty")
    if re.search("[\ud800-\udfff]", value):
        raise ConfigError(f"{where}: has half of a surrogate pair, which is no character; repair the text")
    return value


def _of_prompt(prompt: Any, where: str) -> list[tuple[str, str]]:
    return [("user", _text(prompt, f"{where}: prompt"))]


def _of_turns(turns: Any, where: str) -> list[tuple[str, str]]:
    """SPEED-Bench's public layout: the user's turns, without answers."""
    if not isinstance(turns, list) or not turns:
        raise ConfigError(f"{where}: turns: give a list of texts, the user's turns")
    return [("user", _text(turns[0], f"{where}: turns[0]"))]


def _of_conversations(said: Any, where: str) -> list[tuple[str, str]]:
    """ShareGPT's layout. As benchmarks on it do, only what the human says first is asked, after a system prompt if there is
    one.
    """
    if not isinstance(said, list) or not all(isinstance(turn, Mapping) and "from" in turn for turn in said):
        raise ConfigError(f"{where}: conversations: give a list of objects with from and value")
    human = next((turn for turn in said if turn["from"] in SHAREGPT_USERS and turn.get("value")), None)
    if human is None:
        return []
    place = f"{where}: conversations"
    system = [("system", _text(turn.get("value"), place)) for turn in said[:1] if turn["from"] == "system"]
    return [*system, ("user", _text(human["value"], place))]


_TURNS = {
    "messages": _of_messages,
    "turns": _of_turns,
    "conversations": _of_conversations,
    "prompt": _of_prompt,
}
