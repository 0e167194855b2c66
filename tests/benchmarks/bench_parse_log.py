"""Time and memory of the log parser on a synthetic server log, beside `grep` on the same file.

    python -m tests.benchmarks.bench_parse_log [--mb 200]

Builds the log in a temporary folder: a start-up, then periodic lines, speculative metrics, access lines,
request lines and SGLang batch lines, some coloured, and a crash at the end. Prints figures; it is not a test.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
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
MIXES = {
    "periodic": (0, 1, 1, 0, 0, 0),
    "mixed": (10, 2, 2, 3, 0, 1),
    "sglang": (6, 0, 0, 0, 6, 0),
}


def _line(kind: int, rng: random.Random) -> str:
    second = f"11-29 19:{rng.randrange(60):02d}:{rng.randrange(60):02d}"
    tokens = rng.randrange(200, 900)
    return (
        f'(APIServer pid=1) INFO:     127.0.0.1:{rng.randrange(30000, 60000)} - "POST '
        f'/v1/chat/completions HTTP/1.1" 200 OK\n',
        f"(APIServer pid=1) INFO {second} [loggers.py:310] Engine 000: Avg prompt throughput: "
        f"{rng.random() * 900:.1f} tokens/s, "
        f"Avg generation throughput: {rng.random() * 900:.1f} tokens/s, Running: {rng.randrange(64)} "
        f"reqs, Waiting: 0 reqs, "
        f"GPU KV cache usage: {rng.random() * 90:.1f}%, Prefix cache hit rate: 0.0%\n",
        f"(APIServer pid=1) INFO {second} [metrics.py:120] SpecDecoding metrics: Mean acceptance length: "
        f"{1 + tokens / 1000 * 3:.2f}, "
        f"Accepted throughput: 61.00 tokens/s, Drafted throughput: 100.00 tokens/s, Accepted: "
        f"{tokens * 3} tokens, "
        "Drafted: 3000 tokens, Per-position acceptance rate: 0.801, 0.601, 0.430, Avg Draft acceptance "
        "rate: 61.0%\n",
        f"(APIServer pid=1) INFO {second} [logger.py:39] Received request "
        f"chatcmpl-{rng.randrange(10**12):x}: prompt: "
        "'Write a function that parses the KV cache of an Error log, Using words', params: "
        "SamplingParams(n=1)\n",
        f"[2026-11-29 20:{rng.randrange(60):02d}:07] Decode batch, #running-req: {rng.randrange(64)}, "
        f"#token: 441, token usage: 0.12, "
        f"accept len: {1 + rng.random() * 3:.2f}, accept rate: 0.72, cuda graph: True, gen throughput "
        f"(token/s): 425.76, #queue-req: 0\n",
        f"\x1b[1;36m(EngineCore pid=2)\x1b[0;0m INFO {second} [core.py:7] something nobody reads about "
        f"{tokens}\n",
    )[kind]


def build(path: Path, megabytes: int, weights: tuple[int, ...]) -> None:
    """Write a log of about this size; blocks of lines are reused so that building stays quick."""
    rng = random.Random(0)
    kinds = range(len(weights))
    block = "".join(_line(kind, rng) for kind in rng.choices(kinds, weights, k=20000)).encode()
    with path.open("wb") as stream:
        stream.write(START.encode())
        while stream.tell() < megabytes * 1_000_000:
            stream.write(block)
        stream.write(CRASH.encode())


_CHILD = """
import resource, sys, time
from pathlib import Path
from scripts.lib.logs import parse_path
start = time.perf_counter()
report = parse_path(Path(sys.argv[1]))
seconds = time.perf_counter() - start
cpu = time.process_time()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(
    f"{seconds:.2f} s ({cpu:.2f} s of CPU with imports), {peak:.0f} MB peak, {report.lines:,} lines, "
    f"{len(report.intervals):,} periodic, {len(report.speculation):,} speculative, cause "
    f"{report.failure and report.failure.catalogue_id}"
)
"""


def main() -> None:
    """Build, parse in a child process, grep, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mb", type=int, default=200, help="size of the log in megabytes")
    megabytes = parser.parse_args().mb
    for name, weights in MIXES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "server.log"
            build(path, megabytes, weights)
            child = subprocess.run(
                [sys.executable, "-c", _CHILD, str(path)], capture_output=True, text=True, check=True
            )
            start = time.perf_counter()
            pattern = "KV cache|SpecDecoding metrics|Avg prompt throughput|Decode batch|Traceback|Error"
            found = subprocess.run(
                ["grep", "-cE", pattern, str(path)], capture_output=True, text=True, check=False
            )
            grep = time.perf_counter() - start
            print(f"{name:>9} {path.stat().st_size / 1e6:.0f} MB  parser: {child.stdout.strip()}")
            print(f"{'':>9}         grep -cE: {grep:.2f} s, {int(found.stdout):,} lines")
    print(f"this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB peak")


if __name__ == "__main__":
    main()
