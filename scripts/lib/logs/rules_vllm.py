"""vLLM lines, 0.5 to 0.33 (V0 and V1): one rule per form, named groups are facts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scripts.lib.logs.fields import INTEGER as I
from scripts.lib.logs.fields import NUMBER as N
from scripts.lib.logs.fields import integer
from scripts.lib.logs.rules import Rule, rule

if TYPE_CHECKING:
    from scripts.lib.logs.collect import Collector
    from scripts.lib.logs.model import Line

DEVICES = ("GPU", "CPU", "XPU", "HPU", "TPU", "NPU")


def _kv_size(collector: Collector, line: Line, found: re.Match[str]) -> None:
    host = "host" in found["dev"]
    dialect = "vllm 0.28+" if found["conc"] else "vllm 0.8-0.27"
    name = "kv_cache_with_host_tokens" if host else "kv_cache_tokens"
    collector.put(name, integer(found["tok"]), line, dialect)
    if found["conc"] and not host:
        collector.put("max_concurrency_length_tokens", integer(found["len"]), line, dialect)
        collector.put("max_concurrency", float(found["conc"].replace(",", "")), line, dialect)


def _blocks(collector: Collector, line: Line, found: re.Match[str]) -> None:
    dialect = "vllm V0" if found["cpu"] else "vllm V1 0.6.6-0.7.3"
    collector.put("num_gpu_blocks", integer(found["blocks"]), line, dialect)


def _weights_loaded(collector: Collector, line: Line, found: re.Match[str]) -> None:
    name = "drafter_load_s" if collector.in_drafter(line) else "weights_load_s"
    collector.put(name, float(found["s"]), line, "vllm")


def _model_loaded(collector: Collector, line: Line, found: re.Match[str]) -> None:
    collector.put_groups(found, line, "vllm 0.8+" if "loading took" in found[0] else "vllm 0.5-0.7.3")
    if line.source:
        name = line.source.split(":")[0].rpartition("/")[2]
        newest = "V0" if collector.generation == "V0" else "V2"
        runner = newest if name == "model_runner.py" else "V1" if name.endswith("_model_runner.py") else None
        if runner is not None:
            collector.put("model_runner", runner, line, "vllm, from the logging file")


def _drafter_begins(collector: Collector, line: Line, _found: re.Match[str]) -> None:
    collector.begin_drafter(line)


def _max_len(collector: Collector, line: Line, found: re.Match[str]) -> None:
    # The drafter's config prints the same line, after the target's.
    collector.put("max_model_len", integer(found["len"]), line, "vllm 'Using max model len'")


def _architecture(collector: Collector, line: Line, found: re.Match[str]) -> None:
    # Target and drafter print alike, the target first; combine.py tells them apart once the method is known.
    collector.put("architecture", found["a"], line, "vllm")


def _async_on(collector: Collector, line: Line, found: re.Match[str]) -> None:
    collector.put("async_scheduling", found["state"] == "enabled", line, "vllm 0.14+")


def _async_off(collector: Collector, line: Line, _found: re.Match[str]) -> None:
    collector.put("async_scheduling", False, line, "vllm 0.14+")


def _cold(collector: Collector, line: Line, _found: re.Match[str]) -> None:
    collector.put("compile_cache", "cold", line, "vllm")


def _warm(collector: Collector, line: Line, _found: re.Match[str]) -> None:
    collector.put("compile_cache", "warm", line, "vllm")


def _eager(collector: Collector, line: Line, _found: re.Match[str]) -> None:
    collector.put("enforce_eager", True, line, "vllm")


def _runner(value: str):
    def handler(collector: Collector, line: Line, _found: re.Match[str]) -> None:
        collector.put("model_runner", value, line, "vllm")

    return handler


def _engine_config(collector: Collector, line: Line, found: re.Match[str]) -> None:
    collector.set_engine("vllm", found["version"])
    collector.set_generation("V1" if found["gen"] == "a V1" else "V0")
    collector.set_config(found["config"], line)


def _api_version(collector: Collector, line: Line, found: re.Match[str]) -> None:
    collector.banner(line)
    collector.set_engine("vllm", found["version"])


def _logo_version(collector: Collector, _line: Line, found: re.Match[str]) -> None:
    collector.set_engine("vllm", found["version"])


def _args(collector: Collector, line: Line, found: re.Match[str]) -> None:
    collector.banner(line)
    collector.set_engine("vllm", None)
    collector.set_args(found["body"], line)


def _ready(collector: Collector, line: Line, _found: re.Match[str]) -> None:
    collector.set_ready(line)


def _gib(name: str) -> str:
    return rf"(?P<{name}>{N}) ?[Gg]i?[Bb]"


RULES: tuple[Rule, ...] = (
    # capacity
    rule(
        "vllm 0.8+",
        (*(f"{device} KV cache size: " for device in DEVICES), "GPU + host KV cache size: "),
        rf"(?P<dev>[A-Z]+(?: \+ host)?) KV cache size: (?P<tok>{I}) tokens"
        rf"(?:, Maximum concurrency for (?P<len>{I}) tokens per request: (?P<conc>{N})x)?",
        _kv_size,
    ),
    rule(
        "vllm V0",
        "# ",
        rf"# (?P<dev>\w+) blocks: (?P<blocks>{I})(?P<cpu>, # CPU blocks: {I})?",
        _blocks,
    ),
    rule(
        "vllm 0.6.3-0.27",
        "Maximum concurrency for ",
        rf"Maximum concurrency for (?P<max_concurrency_length_tokens>{I}) tokens per request: "
        rf"(?P<max_concurrency>{N})x",
    ),
    rule(
        "vllm 0.9.1+",
        "Available KV cache memory",
        rf"Available KV cache memory: (?P<kv_available_gib>{N}) GiB",
    ),
    rule(
        "vllm 0.6.4",
        "Memory profiling results",
        rf"Memory profiling results: (?:.*?total_gpu_memory={_gib('device_total_gib')})?"
        rf".*?kv_cache_size={_gib('kv_available_gib')}"
        rf"(?:.*?gpu_memory_utilization=(?P<gpu_memory_utilization>{N}))?",
    ),
    rule(
        "vllm V0 0.6.6-0.10.2",
        "the current vLLM instance can use",
        rf"the current vLLM instance can use total_gpu_memory \({_gib('device_total_gib')}\)"
        rf" x gpu_memory_utilization \((?P<gpu_memory_utilization>{N})\)",
    ),
    rule(
        "vllm V0 0.6.6-0.10.2",
        "model weights take ",
        rf"model weights take {_gib('_weights')}.*?reserved for KV Cache is {_gib('kv_available_gib')}",
    ),
    rule(
        "vllm cpu 0.20+",
        ("Explicitly set (", "Auto set ("),
        rf"(?:Explicitly|Auto) set \((?P<kv_available_gib>{N})/{N}\) GiB for KV cache on node",
    ),
    rule(
        "vllm 0.10.2+",
        "Free memory on device",
        rf"Free memory on device(?: \S+)? \({N}/(?P<device_total_gib>{N}) GiB\) on startup\. "
        rf"Desired GPU memory utilization is \((?P<gpu_memory_utilization>{N}), {N} GiB\)\."
        rf"(?:.*?(?P<activation_gib>{N}) GiB for peak activation)?(?:.*?(?P<non_torch_gib>{N}) GiB for "
        rf"non-torch)?",
    ),
    rule(
        "vllm 0.9+",
        ("vllm cache_config_info", "Engines: vllm cache_config_info"),
        rf"vllm cache_config_info with initialization after num_gpu_blocks is: (?P<num_gpu_blocks>{I})",
        anywhere=True,
    ),
    rule(
        "vllm 0.10+",
        "Setting attention block size to",
        rf"Setting attention block size to (?P<block_size_tokens>{I}) tokens",
    ),
    # weights
    rule(
        "vllm 0.5-0.7.3",
        "Loading model weights took",
        rf"Loading model weights took (?P<weights_gib>{N}) G(?:i)?B",
        _model_loaded,
    ),
    rule(
        "vllm 0.8+",
        "Model loading took",
        rf"Model loading took (?P<weights_gib>{N}) G(?:i)?B(?: memory)?(?: and (?P<model_load_s>{N}) "
        rf"seconds)?",
        _model_loaded,
    ),
    rule(
        "vllm",
        "Loading weights took",
        rf"Loading weights took (?P<s>{N}) s",
        _weights_loaded,
    ),
    rule("vllm 0.8.5+", "Loading drafter model", r"Loading drafter model", _drafter_begins),
    # compile, capture, init
    rule(
        "vllm",
        ("torch.compile took", "torch.compile takes", "[eagle_head] torch.compile took"),
        rf"(?:\[\w+\] )?torch\.compile (?:took|takes) (?P<compile_s>{N}) s in total",
    ),
    rule(
        "vllm 0.18+",
        "Initial profiling/warmup run took",
        rf"Initial profiling/warmup run took (?P<profile_s>{N}) s",
    ),
    rule("vllm", ("Directly load ",), r"Directly load (?:the compiled graph|AOT compilation)", _warm),
    rule(
        "vllm",
        (
            "Compiling a graph for ",
            "Cache the graph of ",
            "Caching the graph",
            "saved AOT compiled function",
            "Compiling model again",
        ),
        r"(?:Compiling a graph for|Cache the graph of|Caching the graph|saved AOT compiled "
        r"function|Compiling model again)",
        _cold,
    ),
    rule(
        "vllm",
        "Graph capturing finished in",
        rf"Graph capturing finished in (?P<capture_s>{N}) secs(?:, took (?P<capture_gib>{N}) GiB)?",
    ),
    rule(
        "vllm 0.18+",
        "Estimated CUDA graph memory",
        rf"Estimated CUDA graph memory: (?P<capture_estimate_gib>{N}) GiB",
    ),
    rule(
        "vllm",
        ("Skipping CUDA graph capture", "Enforce eager set"),
        r"(?:Skipping CUDA graph|Enforce eager)",
        _eager,
    ),
    rule(
        "vllm 0.6.6+",
        "init engine (",
        rf"init engine \([^)]*\) took (?P<init_s>{N}) s(?:econds)?(?: \(compilation: "
        rf"(?P<init_compile_s>{N}) s)?",
    ),
    rule("vllm", "Using max model len", rf"Using max model len (?P<len>{I})", _max_len),
    rule(
        "vllm 0.10+",
        "Updating mamba_ssm_cache_dtype",
        r"Updating mamba_ssm_cache_dtype to '(?P<mamba_ssm_cache_dtype>\w+)'",
    ),
    rule("vllm 0.10+", "Mamba cache mode is set", r"Mamba cache mode is set to '(?P<mamba_cache_mode>\w+)'"),
    rule("vllm", "Resolved architecture", r"Resolved architecture: (?P<a>\w+)", _architecture),
    # scheduler
    rule(
        "vllm 0.6+",
        "Chunked prefill is enabled with",
        rf"Chunked prefill is enabled with max_num_batched_tokens=(?P<max_num_batched_tokens>{I})",
    ),
    rule(
        "vllm 0.20+",
        "max_num_scheduled_tokens is set to",
        rf"max_num_scheduled_tokens is set to\s+(?P<max_num_scheduled_tokens>{I})",
    ),
    rule(
        "vllm 0.14+",
        "Asynchronous scheduling is",
        r"Asynchronous scheduling is (?P<state>enabled|disabled)",
        _async_on,
    ),
    rule(
        "vllm 0.14+",
        "Async scheduling ",
        r"Async scheduling (?:is )?not (?:supported|compatible)",
        _async_off,
    ),
    rule("vllm 0.2x", "Using V2 Model Runner", r"Using V2 Model Runner", _runner("V2")),
    rule(
        "vllm 0.2x",
        "Model Runner V2 requires Triton; using",
        r"Model Runner V2 requires Triton; using the V1",
        _runner("V1"),
    ),
    # identity
    rule(
        "vllm",
        "Initializing ",
        r"Initializing (?P<gen>an|a V0|a V1) LLM engine \(v(?P<version>[^)\s]+)\) with config: "
        r"(?P<config>.*)",
        _engine_config,
    ),
    rule("vllm", "vLLM API server version", r"vLLM API server version (?P<version>\S+)", _api_version),
    rule("vllm 0.16+", "▄▄ ▄█", r"▄▄ ▄█ .*version (?P<version>\d\S*)", _logo_version, anywhere=True),
    rule("vllm 0.9+", "non-default args:", r"non-default args: \{(?P<body>.*)", _args),
    rule("vllm 0.5-0.8", "args: Namespace(", r"args: Namespace\((?P<body>.*)", _args),
    rule(
        "vllm",
        ("Application startup complete", "Uvicorn running on"),
        r"(?:Application startup complete|Uvicorn running on)",
        _ready,
    ),
)
