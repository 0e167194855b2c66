"""The first completions of a started server, asked for aside, so that a server dying meanwhile is noticed at once."""

from __future__ import annotations

import json
import threading
import time

from scripts.lib import gate, probe


class FirstAnswers:
    """Asks the gate's first question, which shows that the server serves, and where it is to be `gated` the others.

    One after another: a server that cannot hold three requests may still be measured at concurrency 1.
    """

    def __init__(self, base_url: str, timeout_s: float, api_key: str | None, gated: bool):
        self.model: str | None = None
        self.tokens: int | None = None
        """Of the first completion; None until it came."""
        self.answered_s: float | None = None
        """When it came, on the monotonic clock."""
        self.answers: list[str] = []
        self.error: Exception | None = None
        self._arguments = (base_url, timeout_s, api_key)
        self._questions = gate.QUESTIONS if gated else gate.QUESTIONS[:1]
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        base_url, timeout_s, api_key = self._arguments
        try:
            self.model = probe.first_model(base_url, api_key)
            for question in self._questions:
                text, tokens = answer(base_url, self.model, question, timeout_s, api_key)
                if self.answered_s is None:
                    self.tokens, self.answered_s = tokens, time.monotonic()
                if not self.tokens:
                    raise ValueError("a completion came back without a token")
                self.answers.append(text)
        except (OSError, RuntimeError, ValueError) as error:
            self.error = error

    @property
    def pending(self) -> bool:
        return self._thread.is_alive()


def answer(
    base_url: str, model: str, question: str, timeout_s: float, api_key: str | None
) -> tuple[str, int]:
    """A short greedy chat completion: its text (the reasoning where the answer proper has not begun) and how many tokens came.

    Raises probe.Unreachable, probe.Refused, or ValueError when the answer is no completion.
    """
    body = {
        "model": model,
        "messages": [{"role": "user", "content": question}],
        "max_tokens": gate.MAX_TOKENS,
        "temperature": 0,
    }
    data = json.loads(probe.request(base_url + "/chat/completions", body, timeout_s, api_key))
    try:
        message, tokens = data["choices"][0]["message"], int(data["usage"]["completion_tokens"])
        parts = (message.get("reasoning"), message.get("reasoning_content"), message.get("content"))
    except (KeyError, IndexError, TypeError, AttributeError):
        raise ValueError("a completion came back without a message or a token count") from None
    return " ".join(dict.fromkeys(part for part in parts if part)), tokens
