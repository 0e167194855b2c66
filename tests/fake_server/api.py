"""The endpoints: which answer a request gets, and the faults that spoil it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from . import sglang_startup
from .cli import VERSION, Launch
from .dialects import DIALECTS
from .engine import Engine, Generation
from .faults import Faults
from .generation import Wanted, chat_text, chat_tokens, make_answer, token_id, tokenize
from .metrics import CacheConfig
from .responses import CompletionSink, error_body
from .settings import Settings
from .vllm_log import Log
from .web import Connection, Request


class Refused(Exception):
    """A request that gets an error instead of tokens."""

    def __init__(self, status: int, kind: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = error_body(status, kind, message, param)


class Api:
    """Routes requests. `ready` opens the server; `die(params, cause)` ends it when a fault says so."""

    def __init__(
        self,
        launch: Launch,
        settings: Settings,
        faults: Faults,
        engine: Engine,
        log: Log,
        max_model_len: int,
        die: Callable[[str, dict], None],
    ) -> None:
        self._launch, self._settings, self._faults = launch, settings, faults
        self._engine, self._log, self._max_model_len, self._die = engine, log, max_model_len, die
        self._dialect = DIALECTS[launch.engine]
        self._completions = 0
        self._skew = (faults.at_boot("metrics_skew") or {"factor": 1.0})["factor"]
        self.ready = False

    def handle(self, request: Request, connection: Connection) -> None:
        """Answer one request, at once or by handing it to the engine."""
        pages = _GET | _SGLANG_GET if self._launch.engine == "sglang" else _GET | _VLLM_GET
        get, post = pages.get(request.path), _POST.get(request.path)
        if not self.ready:
            connection.respond(503)
        elif request.method == "GET" and get:
            get(self, connection)
        elif request.method == "POST" and post:
            try:
                post(self, request, connection)
            except Refused as refused:
                connection.respond(refused.status, refused.body)
        elif get or post:
            connection.respond(405, {"detail": "Method Not Allowed"})
        else:
            connection.respond(404, {"detail": "Not Found"})

    def health(self, connection: Connection) -> None:
        connection.respond(503 if self._engine.dead else 200)

    def version(self, connection: Connection) -> None:
        connection.respond(200, {"version": VERSION})

    def health_generate(self, connection: Connection) -> None:
        """SGLang generates a token to see whether it can, and looks for it a second later."""
        asyncio.get_running_loop().call_later(1.0, self.health, connection)

    def server_info(self, connection: Connection) -> None:
        counters = self._engine.counters
        average = 1 + counters.accepted / counters.drafts if counters.drafts else None
        state = {"effective_max_running_requests_per_dp": self._launch.max_num_seqs}
        info = {
            "model_path": self._launch.model,
            "context_length": self._max_model_len,
            "max_total_num_tokens": self._settings.kv_cache_tokens,
            "internal_states": [state | ({"avg_spec_accept_length": average} if average else {})],
            "version": sglang_startup.VERSION,
        }
        connection.respond(200, self._launch.flags | info)

    def models(self, connection: Connection) -> None:
        now = int(time.time())
        cards = [
            {
                "id": name,
                "object": "model",
                "created": now,
                "owned_by": self._dialect.owner,
                "root": self._launch.model,
                "parent": None,
                "max_model_len": self._max_model_len,
                "permission": [],
            }
            for name in self._launch.served_names
        ]
        connection.respond(200, {"object": "list", "data": cards})

    def metrics(self, connection: Connection) -> None:
        launch, settings = self._launch, self._settings
        cache = CacheConfig(
            block_size=settings.block_size,
            kv_cache_tokens=settings.kv_cache_tokens,
            max_model_len=self._max_model_len,
            prefix_caching=launch.prefix_caching,
            gpu_memory_utilization=float(str(launch.flag("gpu_memory_utilization", 0.92))),
            cache_dtype=str(launch.flag("kv_cache_dtype", "auto")),
        )
        name = launch.served_names[0]
        text = self._dialect.exposition(name, self._engine.counters, self._engine.gauges(), cache, self._skew)
        connection.respond(200, text)

    def tokenize(self, request: Request, connection: Connection) -> None:
        body = self._body(request)
        tokens = chat_tokens(body["messages"]) if "messages" in body else _prompt_tokens(body)
        ids = [token_id(token.encode()) for token in tokens]
        answer = {"count": len(ids), "max_model_len": self._max_model_len, "tokens": ids, "token_strs": None}
        connection.respond(200, answer)

    def chat(self, request: Request, connection: Connection) -> None:
        self._complete(request, connection, chat=True)

    def completions(self, request: Request, connection: Connection) -> None:
        self._complete(request, connection, chat=False)

    def _complete(self, request: Request, connection: Connection, chat: bool) -> None:
        if self._engine.dead:
            raise _engine_gone()
        body = self._body(request)
        if body.get("n") not in (None, 1):
            raise _bad_request("the fake server gives one choice: n must be 1")
        tokens = chat_tokens(_messages(body)) if chat else _prompt_tokens(body)
        max_tokens, min_tokens = self._limits(body, len(tokens))
        prompt = chat_text(_messages(body)) if chat else _prompt_text(body)
        self._completions += 1
        striking = self._faults.at_request(self._completions, self._engine.in_flight + 1, prompt)
        self._strike(striking)
        answer = make_answer(self._wanted(body, prompt, max_tokens, min_tokens, striking))
        parser = bool(self._launch.flag("reasoning_parser"))
        sink = CompletionSink(connection, body, answer, tokens, self._launch.served_names[0], chat, parser)
        sink.hide_usage = "no_usage" in striking
        generation = Generation(tokens, answer, sink)
        if withhold := striking.get("hang_mid_stream"):
            generation.withhold, generation.hang = withhold, True
        elif withhold := striking.get("close_early"):
            generation.withhold = withhold
        connection.on_lost = lambda: self._engine.cancel(generation)
        sink.start()
        self._engine.submit(generation, request.arrival)

    def _strike(self, striking: dict[str, dict]) -> None:
        """Faults that change the log, or leave the request without an answer."""
        if lines := striking.get("log_at_request", {}).get("lines"):
            for line in lines:
                self._log.given(line)
        if "stall_log" in striking:
            self._log.stalled = True
        for kind in ("die_at_request", "oom_at_concurrency"):
            if kind in striking:
                self._die(kind, striking[kind])
                raise _engine_gone()
        if "http_500" in striking:
            raise Refused(500, "InternalServerError", "Internal server error")

    def _wanted(
        self, body: dict, prompt: str, max_tokens: int, min_tokens: int, striking: dict[str, dict]
    ) -> Wanted:
        settings = self._settings
        temperature = body.get("temperature")
        seed = body.get("seed")
        salt = "" if temperature == 0 else str(self._completions if seed is None else seed)
        thinks = (body.get("chat_template_kwargs") or {}).get("enable_thinking") is not False
        return Wanted(
            prompt=prompt,
            max_tokens=max_tokens,
            min_tokens=min_tokens,
            ignore_eos=bool(body.get("ignore_eos")),
            salt=salt,
            natural_tokens=settings.natural_tokens,
            thinking_tokens=settings.thinking_tokens if thinks else 0,
            thinking_tags=not self._launch.flag("reasoning_parser"),
            answers=settings.answers,
            differ_from=settings.differ_from(prompt),
            garbage=striking.get("garbage_output", {}).get("mode"),
        )

    def _limits(self, body: dict, prompt_tokens: int) -> tuple[int, int]:
        """max_tokens and min_tokens, or a refusal in vLLM's words."""
        asked = body.get("max_completion_tokens")
        asked = body.get("max_tokens") if asked is None else asked
        minimum = body.get("min_tokens") or 0
        if asked is not None and asked < 1:
            raise _bad_request(
                f"max_tokens must be at least 1, got {asked}. (parameter=max_tokens, value={asked})",
                "max_tokens",
            )
        if asked is not None and minimum > asked:
            raise _bad_request(f"min_tokens must be less than or equal to max_tokens={asked}, got {minimum}.")
        output, longest = asked or 0, self._max_model_len
        room = longest - (output or 1)
        if prompt_tokens > room:
            # vLLM's tokenizer stops one token past the limit, hence its "at least".
            seen = max(room, 0) + 1
            raise _bad_request(
                f"This model's maximum context length is {longest} tokens. However, you requested {output} "
                f"output tokens and your prompt contains at least {seen} input tokens, for a total of at "
                f"least {seen + output} tokens. Please reduce the length of the input prompt or the number "
                "of requested output tokens. "
                f"(parameter=input_tokens, value={seen})",
                "input_tokens",
            )
        return asked or longest - prompt_tokens, minimum

    def _body(self, request: Request) -> dict:
        try:
            body = request.json()
        except ValueError as error:
            raise _bad_request(f"Invalid JSON: {error}") from None
        model = body.get("model")
        if model and model not in self._launch.served_names:
            raise Refused(404, "NotFoundError", f"The model `{model}` does not exist.", "model")
        return body


def _messages(body: dict) -> list[dict]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise _bad_request("messages: Field required", "messages")
    return messages


def _prompt_tokens(body: dict) -> list[str]:
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str | list):
        prompt = prompt[0]
    if isinstance(prompt, list) and all(isinstance(token, int) for token in prompt):
        return [str(token) for token in prompt]
    if not isinstance(prompt, str):
        raise _bad_request("prompt: give one text or one list of token ids", "prompt")
    return tokenize(prompt)


def _prompt_text(body: dict) -> str:
    prompt = body["prompt"]
    return prompt if isinstance(prompt, str) else str(prompt)


def _bad_request(message: str, param: str | None = None) -> Refused:
    return Refused(400, "BadRequestError", message, param)


def _engine_gone() -> Refused:
    message = "EngineCore encountered an issue. See stack trace (above) for the root cause."
    return Refused(500, "InternalServerError", message)


_GET = {"/health": Api.health, "/v1/models": Api.models, "/metrics": Api.metrics}
_VLLM_GET = {"/version": Api.version}
_SGLANG_GET = {
    "/health": Api.health_generate,
    "/health_generate": Api.health_generate,
    "/server_info": Api.server_info,
    "/get_server_info": Api.server_info,
}
_POST = {"/tokenize": Api.tokenize, "/v1/chat/completions": Api.chat, "/v1/completions": Api.completions}
