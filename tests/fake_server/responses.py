"""Answers on the wire: event streams and whole bodies, field by field as vLLM 0.27.1 sends them."""

from __future__ import annotations

import json
import os
import time

from .generation import Answer, token_id
from .web import Connection

_DONE = b"data: [DONE]\n\n"
_ENGINE_DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause."


def error_body(status: int, kind: str, message: str, param: str | None = None) -> dict:
    """The body of every error."""
    return {"error": {"message": message, "type": kind, "param": param, "code": status}}


class CompletionSink:
    """Sends one completion to its client, chunk by chunk or at its end. `hide_usage` leaves the usage out."""

    def __init__(
        self,
        connection: Connection,
        body: dict,
        answer: Answer,
        prompt_tokens: list[str],
        model: str,
        chat: bool,
        reasoning: bool,
    ) -> None:
        self._connection, self._answer, self._prompt_tokens = connection, answer, prompt_tokens
        self._chat = chat
        self._stream = bool(body.get("stream"))
        self._with_ids = bool(body.get("return_token_ids"))
        self._with_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        self._reasoning_end = answer.thinking_tokens if reasoning and chat else 0
        self.hide_usage = False
        self._created, self._model = int(time.time()), model
        self._id = ("chatcmpl-" if chat else "cmpl-") + os.urandom(8).hex()
        self._head, self._tail = b"", b""

    def start(self) -> None:
        """Open the stream; vLLM sends its head before there is a token."""
        if not self._stream:
            return
        kind = "chat.completion.chunk" if self._chat else "text_completion"
        opening = '"delta":{"content":"' if self._chat else '"text":"'
        self._head = f'{self._envelope(kind)}"choices":[{{"index":0,{opening}'.encode()
        closing = '"}' if self._chat else '"'
        self._tail = f'{closing},"logprobs":null,"finish_reason":null'.encode()
        if not self._chat:
            self._tail += b',"stop_reason":null,"prompt_token_ids":null'
        self._connection.start_stream()

    def tokens(self, start: int, end: int, finish_reason: str | None) -> None:
        """Tokens `start` to `end` are there; the last ones come with a finish reason."""
        if not self._stream:
            if finish_reason:
                self._connection.respond(200, self._whole(finish_reason))
            return
        data = self._chunk(start, end, finish_reason)
        if start == 0:
            data = self._first(data)
        if finish_reason is None:
            self._connection.events(data)
            return
        if self._with_usage and not self.hide_usage:
            data += self._usage_chunk()
        self._connection.events(data + _DONE)
        self._connection.end_stream()

    def close_early(self, clean: bool) -> None:
        """The stream ends without its end: an orderly HTTP body, or a cut connection."""
        if self._stream and clean:
            self._connection.end_stream(close=True)
        else:
            self._connection.drop()

    def engine_died(self) -> None:
        """A stream that has begun can only report an error as its next event."""
        error = error_body(500, "InternalServerError", _ENGINE_DEAD)
        if not self._stream:
            self._connection.respond(500, error)
            return
        self._connection.events(b"data: %b\n\n" % json.dumps(error).encode() + _DONE)
        self._connection.end_stream()

    def _envelope(self, kind: str) -> str:
        return (
            f'data: {{"id":"{self._id}","object":"{kind}","created":{self._created},'
            f'"model":{json.dumps(self._model)},'
        )

    def _chunk(self, start: int, end: int, finish_reason: str | None) -> bytes:
        if start < self._reasoning_end:
            head, text = self._reasoning_head(start, end)
        else:
            head, text = self._head, self._answer.text(start, end)
        ids = self._answer.ids_json(start, end) if self._with_ids else b"null"
        tail = self._tail
        if finish_reason:
            tail = tail.replace(b'"finish_reason":null', b'"finish_reason":"%b"' % finish_reason.encode())
            if self._chat:
                tail += b',"stop_reason":null'
        return b'%b%b%b,"token_ids":%b}]}\n\n' % (head, text, tail, ids)

    def _reasoning_head(self, start: int, end: int) -> tuple[bytes, bytes]:
        """Head and text of a chunk that begins within the reasoning, and may end beyond it."""
        cut = min(end, self._reasoning_end)
        head = self._head.replace(b'"content":"', b'"reasoning":"')
        text = self._answer.text(start, cut)
        if cut == end:
            return head, text
        return b'%b%b","content":"' % (head, text), self._answer.text(cut, end)

    def _first(self, chunk: bytes) -> bytes:
        """The first chunk: a chat opens with its role, and token ids of the prompt come once."""
        ids = "null"
        if self._with_ids:
            prompt = [token_id(token.encode()) for token in self._prompt_tokens]
            ids = json.dumps(prompt, separators=(",", ":"))
        if not self._chat:
            return chunk.replace(b'"prompt_token_ids":null', b'"prompt_token_ids":%b' % ids.encode(), 1)
        opening = (
            f'{self._envelope("chat.completion.chunk")}"choices":[{{"index":0,'
            f'"delta":{{"role":"assistant","content":""}},"logprobs":null,"finish_reason":null}}],'
            f'"prompt_token_ids":{ids},"prompt_text":null}}\n\n'
        )
        return opening.encode() + chunk

    def _usage(self) -> dict:
        prompt, completion = len(self._prompt_tokens), len(self._answer.pieces)
        return {"prompt_tokens": prompt, "total_tokens": prompt + completion, "completion_tokens": completion}

    def _usage_chunk(self) -> bytes:
        kind = "chat.completion.chunk" if self._chat else "text_completion"
        usage = json.dumps(self._usage(), separators=(",", ":"))
        return f'{self._envelope(kind)}"choices":[],"usage":{usage}}}\n\n'.encode()

    def _whole(self, finish_reason: str) -> dict:
        """The body of an answer that is not streamed."""
        answer = self._answer
        text = json.loads(b'"%b"' % answer.text(self._reasoning_end))
        ids = answer.ids() if self._with_ids else None
        prompt_ids = [token_id(token.encode()) for token in self._prompt_tokens] if self._with_ids else None
        choice: dict = {"index": 0}
        if self._chat:
            thought = (
                json.loads(b'"%b"' % answer.text(0, self._reasoning_end)) if self._reasoning_end else None
            )
            choice["message"] = {
                "role": "assistant",
                "content": text,
                "refusal": None,
                "annotations": None,
                "audio": None,
                "function_call": None,
                "tool_calls": [],
                "reasoning": thought,
            }
        else:
            choice["text"] = text
        choice |= {"logprobs": None, "finish_reason": finish_reason, "stop_reason": None, "token_ids": ids}
        if not self._chat:
            choice |= {"prompt_logprobs": None, "prompt_token_ids": prompt_ids}
        whole = {
            "id": self._id,
            "object": "chat.completion" if self._chat else "text_completion",
            "created": self._created,
            "model": self._model,
            "choices": [choice],
            "system_fingerprint": None,
            "usage": None if self.hide_usage else self._usage() | {"prompt_tokens_details": None},
        }
        return whole | ({"prompt_logprobs": None, "prompt_token_ids": prompt_ids} if self._chat else {})
