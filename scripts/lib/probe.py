"""Small blocking requests to a server: is it there, which model, does it answer. Standard library only."""

from __future__ import annotations

import http.client
import json
import socket
import urllib.error
import urllib.request

_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Servers are on loopback or named by the user: a proxy from the environment must not come between."""


class Unreachable(OSError):
    """No HTTP answer: refused, reset, closed early or timed out."""


class Refused(RuntimeError):
    """An HTTP answer that is an error. `status` is its code, the message the server's own words."""

    def __init__(self, status: int, message: str):
        super().__init__(f"HTTP {status}: {message}")
        self.status = status


def free_port() -> int:
    """A TCP port on loopback that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def request(url: str, body: object = None, timeout_s: float = 5.0, api_key: str | None = None) -> bytes:
    """GET, or POST of JSON when there is a body. Raises Unreachable or Refused."""
    headers = {"Content-Type": "application/json"}
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"
    data = None if body is None else json.dumps(body).encode()
    try:
        wanted = urllib.request.Request(url, data, headers)  # noqa: S310 - base URLs are http(s) by schema
        with _OPENER.open(wanted, timeout=timeout_s) as response:
            return response.read()
    except urllib.error.HTTPError as error:
        raise Refused(error.code, error_message(error.read())) from None
    except (OSError, http.client.HTTPException) as error:
        raise Unreachable(str(error)) from None


def error_message(body: bytes) -> str:
    text = body.decode(errors="replace").strip()
    try:
        data = json.loads(text)
        inner = data.get("error", data)
        return str(inner.get("message", text) if isinstance(inner, dict) else inner)[:500]
    except (ValueError, AttributeError):
        return text[:500]


def healthy(base_url: str, api_key: str | None = None, timeout_s: float = 5.0) -> bool:
    """Whether GET /health (beside /v1) answers 2xx; a server without that page counts as healthy."""
    try:
        request(base_url.removesuffix("/v1") + "/health", timeout_s=timeout_s, api_key=api_key)
    except Refused as error:
        return error.status == 404
    except Unreachable:
        return False
    return True


_VERSION_PAGES = ("/version", "/server_info", "/get_server_info")


def engine_version(base_url: str, api_key: str | None = None) -> str | None:
    """The release that a server says it is: vLLM has a page for it, SGLang tells it among its settings. None where it does not."""
    for page in _VERSION_PAGES:
        try:
            told = json.loads(request(base_url.removesuffix("/v1") + page, api_key=api_key))
        except (Unreachable, Refused, ValueError):
            continue
        if isinstance(told, dict) and isinstance(told.get("version"), str):
            return told["version"]
    return None


def first_model(base_url: str, api_key: str | None = None) -> str:
    """The id of the first model listed. Raises Unreachable, Refused or ValueError."""
    listed = json.loads(request(base_url + "/models", api_key=api_key))
    try:
        return listed["data"][0]["id"]
    except (KeyError, IndexError, TypeError):
        raise ValueError(f"{base_url}/models lists no model") from None


def answers(base_url: str, model: str, timeout_s: float, api_key: str | None = None) -> bool:
    """Whether a chat completion of one token comes back."""
    body = {"model": model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}
    try:
        request(base_url + "/chat/completions", body, timeout_s, api_key)
    except (Unreachable, Refused):
        return False
    return True


def metrics_text(base_url: str, timeout_s: float = 10.0, api_key: str | None = None) -> bytes | None:
    """The Prometheus page beside /v1, None where there is none."""
    try:
        return request(base_url.removesuffix("/v1") + "/metrics", timeout_s=timeout_s, api_key=api_key)
    except (Unreachable, Refused):
        return None
