"""SGLang lines, 0.4 to 0.5.23. "GB" in all of them is 2^30 bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scripts.lib.logs.fields import INTEGER as I
from scripts.lib.logs.fields import NUMBER as N
from scripts.lib.logs.fields import integer, number, parse_fields, plain
from scripts.lib.logs.rules import Rule, rule

if TYPE_CHECKING:
    from scripts.lib.logs.collect import Collector
    from scripts.lib.logs.model import Line

_SIZE = re.compile(rf"(?P<part>K|V|KV) size: (?P<gib>{N}) ?GB")


def _capacity(collector: Collector, line: Line, found: re.Match[str]) -> None:
    collector.set_engine("sglang", None)
    dialect = "sglang 0.4+"
    collector.put("kv_cache_tokens", integer(found["tokens"]), line, dialect)
    fields = parse_fields(found["rest"])
    for key, name in (
        ("context_len", "max_model_len"),
        ("max_running_requests", "max_num_seqs"),
        ("chunked_prefill_size", "chunked_prefill_tokens"),
    ):
        value = plain(fields.get(key))
        if isinstance(value, int):
            collector.put(name, value, line, dialect)
    free = re.match(N, fields.get("available_gpu_mem", ""))
    if free is not None:
        collector.memory_step(line, "capacity line", number(free[0]))


def _pool(collector: Collector, line: Line, found: re.Match[str]) -> None:
    """One KV pool: the target's comes first on each rank, the drafter's after it."""
    collector.set_engine("sglang", None)
    sizes = [number(size["gib"]) for size in _SIZE.finditer(found["rest"])]
    draft = "draft" in found["lead"] or collector.pool_seen(line)
    dialect = "sglang 0.5.18+" if "Post-capture" in found["lead"] else "sglang 0.4.3-0.5.15"
    if sizes:
        collector.put("drafter_kv_gib" if draft else "_pool_gib", round(sum(sizes), 2), line, dialect)
    tokens = re.search(rf"#tokens: ({I})", found["rest"])
    if tokens is not None and not draft:
        collector.put("_pool_tokens", integer(tokens[1]), line, dialect)
    kind = re.search(r"dtype: torch\.(\w+)", found["rest"])
    if kind is not None and not draft:
        collector.put("_pool_dtype", kind[1], line, dialect)


def _weights(collector: Collector, line: Line, found: re.Match[str]) -> None:
    collector.set_engine("sglang", None)
    rest = found["rest"]
    drafter = collector.weights_seen(line)
    used = re.search(rf"mem usage=({N}) ?GB", rest)
    dialect = "sglang 0.4.4+" if used else "sglang 0.4.0-0.4.3"
    if used is not None:
        collector.put("weights_gib", number(used[1]), line, dialect)
        if drafter:
            collector.put("drafter_weights_gib", number(used[1]), line, dialect)
    elapsed = re.search(rf"elapsed=({N}) s", rest)
    if elapsed is not None:
        name = "drafter_load_s" if drafter else "weights_load_s"
        collector.put(name, number(elapsed[1]), line, "sglang 0.5.9+")
    kind = re.search(r"type=(\w+)", rest)
    if kind is not None:
        collector.put("drafter_architecture" if drafter else "architecture", kind[1], line, dialect)
    _step(collector, line, rest, "weights loaded")


def _step(collector: Collector, line: Line, text: str, step: str) -> None:
    free = re.search(rf"avail mem=({N}) ?GB", text)
    if free is not None:
        collector.memory_step(line, step, number(free[1]))


def _memory_line(collector: Collector, line: Line, found: re.Match[str]) -> None:
    collector.set_engine("sglang", None)
    _step(collector, line, found[0], found[0].partition(".")[0])


def _capture(collector: Collector, line: Line, found: re.Match[str]) -> None:
    collector.set_engine("sglang", None)
    elapsed = re.search(rf"(?:Time elapsed: |elapsed=)({N}) ?s", found["rest"])
    if elapsed is not None:
        collector.put("capture_s", number(elapsed[1]), line, "sglang 0.4.4+")
    used = re.search(rf"mem usage=({N}) ?GB", found["rest"])
    if used is not None:
        collector.put("capture_gib", number(used[1]), line, "sglang 0.4.4+")
    _step(collector, line, found["rest"], found["what"].strip() + " end")


def _mamba(collector: Collector, line: Line, found: re.Match[str]) -> None:
    sizes = [
        number(size)
        for size in re.findall(rf"(?:conv_state|ssm_state\w*|intermediate\w*) size: ({N}) ?GB", found[0])
    ]
    collector.put("hybrid", True, line, "sglang 0.5.2+")
    if sizes:
        collector.put("mamba_cache_gib", round(sum(sizes), 3), line, "sglang 0.5.2+")


def _swa(collector: Collector, line: Line, found: re.Match[str]) -> None:
    collector.put("hybrid", True, line, "sglang 0.5.4+")
    collector.put("swa_tokens", integer(found["swa"]), line, "sglang 0.5.4+")


def _server_args(collector: Collector, line: Line, found: re.Match[str]) -> None:
    collector.banner(line)
    collector.set_engine("sglang", None)
    collector.set_generation(None)
    collector.set_args(found["body"], line)
    collector.set_config(found["body"], line)


def _ready(collector: Collector, line: Line, _found: re.Match[str]) -> None:
    collector.set_engine("sglang", None)
    collector.set_ready(line)


def _backend(collector: Collector, line: Line, found: re.Match[str]) -> None:
    collector.put("attention_backend", found["b"], line, "sglang")


RULES: tuple[Rule, ...] = (
    rule("sglang", "server_args=ServerArgs(", r"server_args=ServerArgs\((?P<body>.*)", _server_args),
    rule(
        "sglang 0.4+",
        "max_total_num_tokens=",
        rf"max_total_num_tokens=(?P<tokens>{I}), (?P<rest>(?:chunked|max_prefill).*)",
        _capacity,
    ),
    rule(
        "sglang 0.4.3+",
        ("KV Cache is allocated", "KV cache is allocated", "KV cache allocated"),
        r"(?P<lead>[^.=]{0,80})\bKV [Cc]ache (?:is )?allocated\.(?P<rest>.*)",
        _pool,
        anywhere=True,
    ),
    rule("sglang", "Load weight end", r"Load weight end\.(?P<rest>.*)", _weights),
    rule(
        "sglang",
        ("Memory pool end", "Load weight begin"),
        r"(?:Memory pool end|Load weight begin)\..*",
        _memory_line,
    ),
    rule(
        "sglang 0.4.4+",
        "Capture ",
        r"(?P<what>Capture [\w -]*?(?:cuda|CUDA) graph) end\.(?P<rest>.*)",
        _capture,
    ),
    rule("sglang 0.4.4+", "Capture ", r"Capture [\w -]*?(?:cuda|CUDA) graph begin\..*", _memory_line),
    rule("sglang 0.5.2+", "Mamba Cache is allocated", r"Mamba Cache is allocated\..*", _mamba),
    rule(
        "sglang 0.5.4+",
        "SWAKVPool mem usage",
        rf"SWAKVPool mem usage: {N} ?GB, swa size: (?P<swa>{I}), full size: (?P<full>{I})",
        _swa,
    ),
    rule(
        "sglang",
        ("Attention backend not", "Use "),
        r"(?:Attention backend not (?:set|explicitly specified)\. )?Use (?P<b>\w+) (?:attention "
        r")?backend(?: by default)?\.",
        _backend,
    ),
    rule("sglang 0.4+", "The server is fired up", r"The server is fired up and ready to roll", _ready),
)
