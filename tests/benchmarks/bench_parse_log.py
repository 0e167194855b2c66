"""Time and memory of the log parser on synthetic server logs of every dialect, beside `grep` on the same files.

    python -m tests.benchmarks.bench_parse_log [--mb 200] [NAME ...]

Builds each log in a temporary folder: a start-up, then the lines that fill a long log in that dialect, access and request
lines between them, and a crash at the end. Seconds are CPU time of one core, without imports. Prints figures; it is not a test.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

_CORE = "(EngineCore pid=2) INFO 11-29 19:06:53 "
_FATAL = "(EngineCore pid=2) ERROR 11-29 19:20:12 [core.py:1332] "
START = (
    "(APIServer pid=1) INFO 11-29 19:04:26 [api_utils.py:273] non-default args: {'model': 'm'}\n"
    f"{_CORE}[core.py:116] Initializing a V1 LLM engine (v0.26.0) with config: model='m', speculative_config="
    "SpeculativeConfig(method='mtp', model='m', num_spec_tokens=3), max_seq_len=65536, enforce_eager=False\n"
    f"{_CORE}[gpu_worker.py:560] Available KV cache memory: 58.6 GiB\n"
    f"{_CORE}[kv_cache_utils.py:2177] GPU KV cache size: 8,894,691 tokens\n"
    f"{_CORE}[kv_cache_utils.py:2178] Maximum concurrency for 65,536 tokens per request: 135.72x\n"
    "(APIServer pid=1) INFO:     Application startup complete.\n"
)
CRASH = (
    f"{_FATAL}EngineCore encountered a fatal error.\n"
    f"{_FATAL}Traceback (most recent call last):\n"
    f'{_FATAL}  File "core.py", line 1323, in run_engine_core\n'
    f"{_FATAL}torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n"
    "(APIServer pid=1) ERROR 11-29 19:20:12 [async_llm.py:704] vllm.v1.engine.exceptions.EngineDeadError: "
    "EngineCore encountered an issue.\n"
)

Kind = Callable[[random.Random], str]


def stats(rng: random.Random) -> str:
    return f"Engine 000: {_throughput(rng)}, GPU KV cache usage: {rng.random() * 90:.1f}%, Prefix cache hit rate: 0.0%"


def stats_v0(rng: random.Random) -> str:
    usage = f"GPU KV cache usage: {rng.random() * 90:.1f}%, CPU KV cache usage: 0.0%."
    return f"{_throughput(rng).replace('Waiting', 'Swapped: 0 reqs, Pending')}, {usage}"


def stats_rich(rng: random.Random) -> str:
    return (
        f"2 Engines Aggregated: {_throughput(rng)}, Preemptions: {rng.randrange(9)}, GPU KV cache usage: "
        f"{rng.random() * 90:.1f}%, Prefix cache hit rate: 1.0%, External prefix cache hit rate: 0.0%"
    )


def _throughput(rng: random.Random) -> str:
    return (
        f"Avg prompt throughput: {rng.random() * 900:.1f} tokens/s, Avg generation throughput: {rng.random() * 900:.1f} tokens/s, "
        f"Running: {rng.randrange(64)} reqs, Waiting: 0 reqs"
    )


def spec_a(rng: random.Random) -> str:
    return (
        f"Speculative metrics: Draft acceptance rate: {rng.random():.3f}, System efficiency: {rng.random():.3f}, Number of "
        f"speculative tokens: 3, Number of accepted tokens: {rng.randrange(9999)}, Number of draft tokens: 30000, Number of "
        "emitted tokens: 24000."
    )


def spec_b(rng: random.Random) -> str:
    return (
        f"Speculative metrics: Draft acceptance rate: {rng.random():.3f}, Number of accepted tokens: {rng.randrange(999)}, "
        "Number of draft tokens: 1000, "
    )


def spec_c(rng: random.Random) -> str:
    accepted = rng.randrange(1000)
    return f"SpecDecoding metrics: Draft acceptance rate: {accepted / 10:.1f}%, Accepted: {accepted} tokens, Drafted: 1000 tokens"


def spec_d(rng: random.Random) -> str:
    accepted = rng.randrange(1000)
    return (
        f"SpecDecoding metrics: Draft acceptance rate: {accepted / 10:.1f}%, Mean acceptance length: {accepted / 1000 * 3:.2f}, "
        f"Accepted: {accepted} tokens, Drafted: 1000 tokens, Per-position acceptance rate: 0.801, 0.601, 0.430"
    )


def spec_e(rng: random.Random) -> str:
    tokens = rng.randrange(200, 900)
    return (
        f"SpecDecoding metrics: Mean acceptance length: {1 + tokens / 1000 * 3:.2f}, Accepted throughput: 61.00 tokens/s, "
        f"Drafted throughput: 100.00 tokens/s, Accepted: {tokens * 3} tokens, Drafted: 3000 tokens, Per-position acceptance "
        "rate: 0.801, 0.601, 0.430, Avg Draft acceptance rate: 61.0%"
    )


def decode(
    rng: random.Random, form: str = ",", rate: str = "accept rate: 0.72, ", more: str = "", end: str = ""
) -> str:
    return (
        f"Decode batch{form} #running-req: {rng.randrange(64)}, #token: 441, token usage: 0.12, {more}accept len: "
        f"{1 + rng.random() * 3:.2f}, {rate}cuda graph: True, gen throughput (token/s): 425.76, #queue-req: 0{end}"
    )


def decode_old(rng: random.Random) -> str:
    return decode(rng, ".", rate="", end=", ")


def decode_hybrid(rng: random.Random) -> str:
    return decode(rng, " [120],", more="mamba num: 4, mamba usage: 0.90, ")


def prefill(rng: random.Random) -> str:
    return (
        f"Prefill batch, #new-seq: 1, #new-token: {rng.randrange(900)}, #cached-token: 75, token usage: 0.01, #running-req: 2, "
        "#queue-req: 5, input throughput (token/s): 54.68"
    )


ACCESS = '(APIServer pid=1) INFO:     127.0.0.1:53412 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
REQUEST = (
    "(APIServer pid=1) INFO 11-29 19:10:00 [logger.py:39] Received request chatcmpl-5f: prompt: 'Write a function that parses "
    "the KV cache of an Error log, Using words', params: SamplingParams(n=1)\n"
)
OTHER = "\x1b[1;36m(EngineCore pid=2)\x1b[0;0m INFO 11-29 19:10:00 [core.py:7] something nobody reads about\n"


def _second(rng: random.Random) -> str:
    return f"11-29 19:{rng.randrange(60):02d}:{rng.randrange(60):02d}"


def new(kind: Kind) -> Kind:
    return lambda rng: f"(APIServer pid=1) INFO {_second(rng)} [loggers.py:310] {kind(rng)}\n"


def old(kind: Kind) -> Kind:
    return lambda rng: f"INFO {_second(rng)} metrics.py:455] {kind(rng)}\n"


def sglang(kind: Kind) -> Kind:
    return lambda rng: f"[2026-{_second(rng)} TP0] {kind(rng)}\n"


def coloured(kind: Kind) -> Kind:
    return lambda rng: (
        f"\x1b[1;36m(EngineCore pid=2)\x1b[0;0m INFO {_second(rng)} [loggers.py:310] {kind(rng)}\n"
    )


def collected(kind: Kind) -> Kind:
    return lambda rng: "2026-11-29T08:04:02.875067135Z " + new(kind)(rng)


def formatter(kind: Kind) -> Kind:
    """A record as vLLM's JSON formatter writes it."""

    def line(rng: random.Random) -> str:
        record = {"asctime": f"2026-{_second(rng)}", "levelname": "INFO", "name": "vllm.v1.metrics.loggers"}
        return json.dumps(record | {"processName": "EngineCore", "message": kind(rng)}) + "\n"

    return line


def envelope(kind: Kind) -> Kind:
    """A line as a container runtime keeps it."""
    return lambda rng: (
        json.dumps({"log": new(kind)(rng), "stream": "stdout", "time": "2026-03-04T05:06:07.1Z"}) + "\n"
    )


def constant(text: str) -> Kind:
    return lambda rng: text


NOISE = [constant(ACCESS)] * 4 + [constant(REQUEST), constant(OTHER)]
MIXES: dict[str, list[Kind]] = {
    "periodic": [new(stats), new(spec_e)],
    "mixed": [new(stats), new(spec_e), *NOISE],
    "v0": [old(stats_v0), old(spec_a)],
    "b": [new(stats), new(spec_b)],
    "c": [new(stats), new(spec_c)],
    "d": [new(stats), new(spec_d)],
    "rich": [new(stats_rich), new(spec_e)],
    "coloured": [coloured(stats), coloured(spec_e)],
    "collected": [collected(stats), collected(spec_e)],
    "json": [formatter(stats), formatter(spec_e)],
    "json-noise": [
        formatter(stats),
        formatter(constant("Received request chatcmpl-5f: prompt: 'Using words'")),
    ],
    "envelope": [envelope(stats), envelope(spec_e)],
    "sglang": [sglang(decode)],
    "sglang-old": [sglang(decode_old), sglang(prefill)],
    "sglang-hybrid": [sglang(decode_hybrid), sglang(prefill)],
    "sglang-json": [envelope(decode)],
}


def build(path: Path, megabytes: int, kinds: list[Kind]) -> None:
    """Write a log of about this size; blocks of lines are reused so that building stays quick."""
    rng = random.Random(0)
    block = "".join(kind(rng) for kind in rng.choices(kinds, k=20000)).encode()
    with path.open("wb") as stream:
        stream.write(START.encode())
        while stream.tell() < megabytes * 1_000_000:
            stream.write(block)
        stream.write(CRASH.encode())


_CHILD = """
import resource, sys, time
from pathlib import Path
from scripts.lib.logs import parse_path
start = time.process_time()
report = parse_path(Path(sys.argv[1]))
seconds = time.process_time() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(
    f"{seconds:6.2f} s, {peak:4.0f} MB peak, {report.lines:>9,} lines, {len(report.intervals):>9,} periodic, "
    f"{len(report.speculation):>9,} speculative, cause {report.failure and report.failure.catalogue_id}"
)
"""


def main() -> None:
    """Build, parse in a child process, grep, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mb", type=int, default=200, help="size of each log in megabytes")
    parser.add_argument("name", nargs="*", choices=[*MIXES, []], help="dialects; all by default")
    arguments = parser.parse_args()
    for name in arguments.name or MIXES:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "server.log"
            build(path, arguments.mb, MIXES[name])
            child = subprocess.run(
                [sys.executable, "-c", _CHILD, str(path)], capture_output=True, text=True, check=True
            )
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            pattern = "KV cache|SpecDecoding metrics|Avg prompt throughput|Decode batch|Traceback|Error"
            subprocess.run(["grep", "-cE", pattern, str(path)], capture_output=True, check=False)
            grep = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
            print(f"{name:>13} {child.stdout.rstrip()}; grep {grep:.2f} s", flush=True)


if __name__ == "__main__":
    main()
