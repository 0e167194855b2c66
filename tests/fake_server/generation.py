"""What is said: prompt token counts and the words of an answer, both functions of the prompt."""

from __future__ import annotations

import functools
import json
import re
import zlib
from dataclasses import dataclass

EOS_ID = 2
EOS = b""

_TOKEN = re.compile(r"[!-~]+|[^\x00-\x7f]")

_VOCABULARY = {
    "adjective": "old quiet bright narrow heavy green gentle distant sudden plain careful broken warm early "
    "hollow steady rapid faded proud",
    "noun": "river teacher engine garden window letter market bridge child storm village lantern farmer "
    "signal road captain harbor painter forest clock kitchen mountain doctor island wagon library machine "
    "tower baker",
    "verb": "crossed watched repaired found carried painted left followed measured opened remembered visited",
    "place": "station school meadow corner shore hall cellar mill square gate field tavern",
    "link": "while because after although before until since",
}
_SENTENCES = (
    "The adjective noun verb the noun near the place.",
    "The adjective noun verb the noun link a noun verb the adjective place.",
    "The adjective noun verb the noun.",
)
_TAPE_WORDS = 8192


def tokenize(text: str) -> list[str]:
    """Tokens of a text: runs of printable ASCII, and every other visible character by itself."""
    return _TOKEN.findall(text)


def token_id(token: bytes) -> int:
    """Identity of a token: the same word has the same id in every prompt and answer."""
    return zlib.crc32(token.strip()) % 49000 + 100 if token else EOS_ID


@functools.cache
def _token_id_json(token: bytes) -> bytes:
    return b"%d" % token_id(token)


def chat_tokens(messages: list[dict]) -> list[str]:
    """Tokens of a chat after the template: 4 marks and the content per message, 2 to open the answer."""
    tokens: list[str] = []
    for message in messages:
        tokens += [
            "<|im_start|>",
            str(message.get("role", "user")),
            *tokenize(_content(message)),
            "<|im_end|>",
            "\n",
        ]
    return [*tokens, "<|im_start|>", "assistant"]


def chat_text(messages: list[dict]) -> str:
    """What is said in a chat, role by role."""
    return "\n".join(f"{message.get('role', 'user')}: {_content(message)}" for message in messages)


def _content(message: dict) -> str:
    """Text of a message whose content is a string or a list of typed parts."""
    content = message.get("content")
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return "" if content is None else str(content)


def _random(seed: int):
    """A small congruential generator: unlike random.Random, free to import and the same in every Python."""
    while True:
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        yield seed >> 33


def _tape() -> tuple[list[bytes], list[int]]:
    """A long text of plain sentences, one piece per word, and the places where sentences start."""
    numbers = _random(20)
    choices = {kind: words.split() for kind, words in _VOCABULARY.items()}
    pieces: list[bytes] = []
    starts = []
    while len(pieces) < _TAPE_WORDS:
        starts.append(len(pieces))
        for word in _SENTENCES[next(numbers) % len(_SENTENCES)].split():
            kind = choices.get(word.rstrip("."))
            if kind:
                word = kind[next(numbers) % len(kind)] + "." * word.endswith(".")
            pieces.append(b" " + word.encode())
    return pieces, starts


_TAPE, _STARTS = _tape()


def _from_tape(offset: int, count: int) -> list[bytes]:
    pieces = _TAPE[offset : offset + count]
    while len(pieces) < count:
        pieces += _TAPE[: count - len(pieces)]
    return pieces


@dataclass(frozen=True)
class Wanted:
    """What decides an answer. Token counts include EOS."""

    prompt: str
    max_tokens: int
    min_tokens: int
    ignore_eos: bool
    salt: str
    natural_tokens: int | list[int]
    thinking_tokens: int
    thinking_tags: bool
    answers: dict[str, str]
    differ_from: int | None
    garbage: str | None


@dataclass(frozen=True)
class Answer:
    """The pieces of an answer, one per token, escaped for JSON; EOS is an empty piece."""

    pieces: list[bytes]
    finish_reason: str
    thinking_tokens: int

    def text(self, start: int = 0, end: int | None = None) -> bytes:
        return b"".join(self.pieces[start:end])

    def ids(self, start: int = 0, end: int | None = None) -> list[int]:
        return [token_id(piece) for piece in self.pieces[start:end]]

    def ids_json(self, start: int, end: int) -> bytes:
        """The same as a JSON list; words come again and again, so theirs is kept."""
        return b"[%b]" % b",".join(map(_token_id_json, self.pieces[start:end]))


def make_answer(wanted: Wanted) -> Answer:
    """The answer to a prompt: deterministic, and independent of everything that `wanted` does not hold."""
    seed = zlib.crc32((wanted.prompt + wanted.salt).encode())
    thinking = 0 if wanted.garbage else wanted.thinking_tokens
    head = _thinking_pieces(seed, thinking, wanted.thinking_tags)
    special = _special_pieces(wanted)
    natural = len(special) + 1 if special is not None else _natural_tokens(wanted)
    if wanted.garbage == "repetition":
        natural = wanted.max_tokens + 1
    if wanted.ignore_eos:
        total, ended = wanted.max_tokens, False
    else:
        natural = max(natural + thinking, wanted.min_tokens + 1)
        total, ended = min(natural, wanted.max_tokens), natural <= wanted.max_tokens
    body = _body(wanted, seed, special, max(0, total - thinking))
    pieces = (head + body)[:total]
    if ended:
        pieces[-1] = EOS
    if pieces:
        pieces[0] = pieces[0].lstrip()
    return Answer(pieces, "stop" if ended else "length", min(thinking, total))


def _natural_tokens(wanted: Wanted) -> int:
    if isinstance(wanted.natural_tokens, int):
        return max(1, wanted.natural_tokens)
    low, high = wanted.natural_tokens
    return low + zlib.crc32(b"length" + wanted.prompt.encode()) % (high - low + 1)


def _thinking_pieces(seed: int, count: int, tags: bool) -> list[bytes]:
    pieces = _from_tape(_STARTS[(seed >> 7) % len(_STARTS)], count)
    if tags and count >= 2:
        pieces[0], pieces[-1] = b"<think>", b" </think>"
    return pieces


def _special_pieces(wanted: Wanted) -> list[bytes] | None:
    """Pieces of an answer that is not ordinary text, without EOS; None for ordinary text."""
    if wanted.garbage == "empty":
        return []
    if wanted.garbage == "one_token":
        return [b" The"]
    if wanted.garbage is None:
        for key, answer in wanted.answers.items():
            if key in wanted.prompt:
                return [json.dumps(" " + word)[1:-1].encode() for word in answer.split()]
    return None


def _body(wanted: Wanted, seed: int, special: list[bytes] | None, count: int) -> list[bytes]:
    if wanted.garbage == "repetition":
        return [b" the"] * count
    if wanted.garbage == "gibberish":
        numbers = _random(seed)
        return [
            rb" \u%04x\u%04x" % (0x3400 + next(numbers) % 6000, 0x3400 + next(numbers) % 6000)
            for _ in range(count)
        ]
    offset = _STARTS[seed % len(_STARTS)]
    if special is not None:
        # Beyond its end (ignore_eos, min_tokens) a degenerate answer stays empty, a given one goes on.
        rest = count - len(special)
        filler = [b""] * rest if wanted.garbage else _from_tape(offset, max(0, rest))
        return (special + filler)[:count]
    pieces = _from_tape(offset, count)
    at = wanted.differ_from
    if at is not None and at < count:
        pieces[at:] = _different(seed, pieces[at], count - at)
    return pieces


def _different(seed: int, piece: bytes, count: int) -> list[bytes]:
    """Another text of `count` pieces that does not start with `piece`."""
    index = (seed >> 3) % len(_STARTS)
    while _TAPE[_STARTS[index] + 1] == piece:
        index = (index + 1) % len(_STARTS)
    return _from_tape(_STARTS[index] + 1, count)
