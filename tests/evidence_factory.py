"""Evidence of invented measurements with known truth, laid out exactly as the measuring job leaves it.

Every number a record can show follows from a `Truth` by mental arithmetic, so tests state what they expect
without running the code under test."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from scripts.lib.cell import Cell, Server
from scripts.lib.store import CellStore, key_of

WINDOW_START_S = 1_790_000_000.0
CLIENT = {"cpu_share": 0.05, "lag_p99_s": 0.001, "lag_max_s": 0.004}
"""What the manifest says of a client that was left in peace."""
HOST_STATE = {
    "absent": None,
    "cpus": 2,
    "load_1m": {"before": 1.0, "after": 1.5},
    "busy_cpu_s": 10.0,
    "steal_s": 0.0,
    "server_cpu_s": 9.0,
    "client_cpu_s": 1.0,
    "foreign_cpu_s": 0.0,
    "foreign_cpu_share": 0.0,
    "foreign_by": "processors",
    "foreign_processes": [],
}
"""What the manifest says of a machine that did nothing else."""
SCENARIO = {
    "forced_length": True,
    "nonce": True,
    "random": False,
    "temperature": 0.0,
    "max_tokens": 65,
    "input_tokens": None,
}
"""What the manifest says of the scenario."""
LOG_CLOCK = "11-29 19:40:{:02d}"


@dataclass(frozen=True)
class Truth:
    """One cell's measurement. Every request takes `ttft_s` + (`tokens` - 1) * `tpot_s`; workers start
    together, no gaps.

    `positions` is accepted / drafts by position over `drafts` drafts (None: no speculation); the warm-up
    before it adds `warmup_drafts` drafts of which nothing was accepted. The last `failed` requests fail."""

    requests: int = 8
    tokens: int = 65
    prompt_tokens: int = 70
    ttft_s: float = 0.1
    tpot_s: float = 0.05
    failed: int = 0
    usage: bool = True
    positions: tuple[float, ...] | None = None
    drafts: int = 100
    warmup_drafts: int = 50
    kv_cache_tokens: int = 90_112
    weights_load_s: float = 0.26
    engine_init_s: float = 2.02
    log: bool = True
    metrics: bool = True
    resolved: dict = field(default_factory=dict)
    """What the server made of method, k and max_model_len, where that is not what the cell says."""
    earlier_log: str = ""
    """Lines of cells measured before on the same boot."""
    failure: dict | None = None
    extra: dict = field(default_factory=dict)
    """Merged into the manifest."""

    @property
    def elapsed_s(self) -> float:
        return self.ttft_s + (self.tokens - 1) * self.tpot_s


def cell(
    method: str = "none",
    k: int = 0,
    concurrency: int = 1,
    max_model_len: int = 1024,
    scenario: str = "code",
    repeat: int = 1,
    hardware: str = "cpu",
    engine: str = "vllm",
    model: str = "smollm2",
) -> Cell:
    return Cell(Server(hardware, engine, model, method, k, max_model_len), scenario, concurrency, repeat)


def request_line(truth: Truth, concurrency: int, index: int, phase: str = "measure") -> dict:
    """One line of requests.jsonl, as the client writes it."""
    fails = phase == "measure" and index >= truth.requests - truth.failed
    start_s = (index // concurrency) * truth.elapsed_s
    end_s = start_s + truth.elapsed_s
    first_s = start_s + truth.ttft_s
    sizes = chunk_sizes(truth)
    return {
        "phase": phase,
        "index": index,
        "prompt_id": f"prompt-{index % 4}",
        "request_sha256": hashlib.sha256(f"{phase} {index} at {concurrency}".encode()).hexdigest()[:16],
        "worker": index % concurrency,
        "start_s": start_s,
        "first_token_s": None if fails else first_s,
        "last_token_s": None if fails else end_s,
        "end_s": end_s,
        "prompt_tokens": None if fails or not truth.usage else truth.prompt_tokens,
        "completion_tokens": None if fails or not truth.usage else truth.tokens,
        "chunk_s": [] if fails else [round(first_s + n * truth.tpot_s, 4) for n in range(len(sizes))],
        "chunk_tokens": None if fails else sizes,
        "finish_reason": None if fails else "length",
        "error": {"type": "InternalServerError", "message": "EngineDeadError", "status": 500}
        if fails
        else None,
        "output": "" if fails else "def f(x):\n    return x",
        "token_ids": None if fails else list(range(100, 100 + truth.tokens)),
    }


def chunk_sizes(truth: Truth) -> list[int]:
    """Tokens per chunk: one from the prefill, then one chunk per decoding step, the accepted tokens spread
    evenly."""
    decoded = truth.tokens - 1
    steps = decoded - round(accepted_tokens(truth) / truth.requests)
    ends = [decoded * (n + 1) // steps for n in range(steps)]
    return [1, *(end - start for start, end in zip([0, *ends], ends, strict=False))]


def startup_log(cell: Cell, truth: Truth) -> str:
    """What vLLM 0.27.1 for CPU prints until it serves, shortened."""
    server, model = replace(cell.server, **truth.resolved), f"models/{cell.server.model}"
    speculation = (
        "None"
        if server.method == "none"
        else f"SpeculativeConfig(method='{server.method}', model='{model}', num_spec_tokens={server.k})"
    )
    head = "INFO 11-29 19:36:{:02d}"
    api, core, worker = (
        f"({name}) {head}" for name in ("APIServer pid=11", "EngineCore pid=22", "Worker pid=33")
    )
    weights = f"[default_loader.py:430] Loading weights took {truth.weights_load_s:.2f} seconds"
    lines = [
        f"{api.format(16)} [api_utils.py:345]  version 0.27.1",
        f"{api.format(16)} [model.py:1883] Using max model len {server.max_model_len}",
        f"{core.format(28)} [core.py:121] Initializing a V1 LLM engine (v0.27.1) with config: "
        f"model='{model}', speculative_config={speculation}, tokenizer='{model}', "
        f"max_seq_len={server.max_model_len}, enforce_eager=True, kv_cache_dtype=auto",
        f"{worker.format(39)} {weights}",
        f"{worker.format(39)} [cpu_worker.py:248] Explicitly set (2.0/23.09) GiB for KV cache on node 0.",
        f"{core.format(39)} [kv_cache_utils.py:2235] GPU KV cache size: {truth.kv_cache_tokens:,} tokens",
        f"{core.format(39)} [kv_cache_utils.py:2236] Maximum concurrency for {server.max_model_len:,} tokens "
        f"per request: {truth.kv_cache_tokens / server.max_model_len:.2f}x",
        f"{core.format(41)} [core.py:355] init engine (profile, create kv cache, warmup model) took "
        f"{truth.engine_init_s:.2f} s",
        f"{api.format(44)} [api_server.py:682] Starting vLLM server on http://127.0.0.1:60143",
        "(APIServer pid=11) INFO:     Application startup complete.",
    ]
    return "\n".join(lines) + "\n"


def window_log(cell: Cell, truth: Truth) -> str:
    """What the server prints during the window: a line per request and the periodic ones."""
    head = f"(APIServer pid=11) INFO {LOG_CLOCK.format(10)} "
    lines = [
        '(APIServer pid=11) INFO:     127.0.0.1:5000 - "POST /v1/chat/completions HTTP/1.1" 200 OK'
    ] * truth.requests
    lines.append(
        f"{head}[loggers.py:310] Engine 000: Avg prompt throughput: 7.0 tokens/s, "
        f"Avg generation throughput: 6.4 tokens/s, Running: {cell.concurrency} reqs, Waiting: 0 reqs, "
        "GPU KV cache usage: 0.1%, Prefix cache hit rate: 0.0%"
    )
    if truth.positions and truth.drafts:  # vLLM prints nothing where nothing was drafted
        accepted, drafted = accepted_tokens(truth), truth.drafts * len(truth.positions)
        positions = ", ".join(f"{share:.3f}" for share in truth.positions)
        lines.append(
            f"{head}[metrics.py:120] SpecDecoding metrics: "
            f"Mean acceptance length: {1 + accepted / truth.drafts:.2f}, "
            f"Accepted throughput: {accepted / 10:.2f} tokens/s, "
            f"Drafted throughput: {drafted / 10:.2f} tokens/s, "
            f"Accepted: {accepted} tokens, Drafted: {drafted} tokens, "
            f"Per-position acceptance rate: {positions}, "
            f"Avg Draft acceptance rate: {100 * accepted / drafted:.1f}%"
        )
    return "\n".join(lines) + "\n"


def metrics_text(truth: Truth, after: bool, tokens: int) -> str:
    """/metrics before or after the window; counters run since the start of the server, warm-up included."""
    label = 'engine="0",model_name="models/smollm2"'
    lines = [
        "# TYPE vllm:generation_tokens counter",
        f"vllm:generation_tokens_total{{{label}}} {float(500 + (tokens if after else 0))}",
        f"vllm:num_preemptions_total{{{label}}} 0.0",
    ]
    if truth.positions:
        drafts = truth.warmup_drafts + (truth.drafts if after else 0)
        counts = [round(share * truth.drafts) if after else 0 for share in truth.positions]
        stem = "vllm:spec_decode_num"
        lines += [
            f"# TYPE {stem}_drafts counter",
            f"{stem}_drafts_total{{{label}}} {float(drafts)}",
            f"{stem}_drafts_created{{{label}}} 1.7e+09",
            f"{stem}_draft_tokens_total{{{label}}} {float(drafts * len(truth.positions))}",
            f"{stem}_accepted_tokens_total{{{label}}} {float(sum(counts))}",
        ]
        lines += [
            f'{stem}_accepted_tokens_per_pos_total{{{label},position="{i}"}} {float(n)}'
            for i, n in enumerate(counts)
        ]
    return "\n".join(lines) + "\n"


def accepted_tokens(truth: Truth) -> int:
    return sum(round(share * truth.drafts) for share in truth.positions or ())


def write_evidence(
    store: Path,
    cell: Cell,
    truth: Truth | None = None,
    spoil: Callable[[Path], None] | None = None,
    identity: dict | None = None,
) -> Path:
    """Write one evidence folder below `store` and return it; `spoil` may damage it after it was sealed."""
    truth = truth or Truth()
    identity = identity or {"cell": cell.axes, "truth": repr(truth)}
    folder = CellStore(store).folder(cell, key_of(identity))
    folder.mkdir(parents=True)
    startup, window = startup_log(cell, truth) + truth.earlier_log, window_log(cell, truth)
    measured = [request_line(truth, cell.concurrency, index) for index in range(truth.requests)]
    started = not (truth.failure and truth.failure["phase"] == "startup")
    if started:
        warmup = [request_line(truth, cell.concurrency, index, "warmup") for index in range(2)]
        text = "".join(json.dumps(line) + "\n" for line in warmup + measured)
        (folder / "requests.jsonl").write_text(text, encoding="utf-8")
    if truth.metrics and started:
        tokens = sum(line["completion_tokens"] or 0 for line in measured)
        (folder / "metrics_before.prom").write_text(metrics_text(truth, False, tokens))
        (folder / "metrics_after.prom").write_text(metrics_text(truth, True, tokens))
    if truth.log:
        log = startup + (window if started else "")
        (folder / "server.log.gz").write_bytes(gzip.compress(log.encode(), mtime=0, compresslevel=6))
    manifest = _manifest(cell, truth, identity, (len(startup.encode()), len((startup + window).encode())))
    (folder / "manifest.json").write_text(json.dumps(manifest))
    seal(folder)
    if spoil:
        spoil(folder)
    return folder


def _manifest(cell: Cell, truth: Truth, identity: dict, bounds: tuple[int, int]) -> dict:
    wall_s = -(-truth.requests // cell.concurrency) * truth.elapsed_s
    return {
        "format": 1,
        "cell": cell.axes,
        "key": key_of(identity),
        "identity": identity,
        "status": "failed" if truth.failure else "measured",
        "failure": truth.failure,
        "window": {
            "start_s": WINDOW_START_S,
            "end_s": WINDOW_START_S + wall_s,
            "wall_s": wall_s,
            "log_start": bounds[0],
            "log_end": bounds[1],
        },
        "client": CLIENT | {"started_at": WINDOW_START_S, "wall_s": wall_s, "cpu_s": 0.05 * wall_s},
        "host_state": HOST_STATE | {"wall_s": wall_s},
        "device_watch": {"absent": "no NVIDIA driver answers on this machine"},
        "scenario": SCENARIO | {"max_tokens": truth.tokens},
        "requests": truth.requests,
        "warmup_requests": 2,
        "server": {
            "argv": [
                "python",
                "-m",
                "vllm.entrypoints.openai.api_server",
                "--model",
                f"models/{cell.server.model}",
            ],
            "environment": {"VLLM_CPU_KVCACHE_SPACE": "2"},
            "environment_names": [],
            "base_url": "http://127.0.0.1:60143/v1",
            "startup": {"health_s": 33.5, "ready_s": 34.75},
        },
        "boot": {
            "id": re.sub(r"\W+", "-", cell.boot.path),
            "start": 1,
            "model": cell.server.model,
            "log": "server-1.log",
        },
        "host": "bench-1",
        "device": {"cpu": "invented", "cores": 2},
        "versions": {"python": "3.11.9", "openai": "3.57.0"},
        "seeds": {"salt": "0"},
        "workflow_commit": "0123abcd",
        "started_at": WINDOW_START_S - 5,
        "finished_at": WINDOW_START_S + wall_s + 1,
    } | truth.extra


def seal(folder: Path) -> None:
    """Write SHA256SUMS as the store does, without its flushing to disk."""
    files = sorted(path for path in folder.iterdir() if path.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (folder / "SHA256SUMS").write_text("".join(lines))


def write_pointer(results: Path, cell: Cell, folder: Path, key: str = "0" * 64) -> Path:
    """results/cells/<cell>/evidence.json, as the measuring rule writes it."""
    pointer = results / "cells" / cell.path / "evidence.json"
    pointer.parent.mkdir(parents=True, exist_ok=True)
    pointer.write_text(json.dumps({"cell": cell.axes, "key": key, "folder": str(folder)}))
    return pointer


STARTUP_FAILURE = {
    "class": "resource_startup",
    "cause": "one request of max_model_len does not fit into the KV cache",
    "root_line": "ValueError: To serve at least one request with the models's max seq len (1024), (4.10 "
    "GiB KV cache is needed, which is larger than the available KV cache memory (3.90 GiB).",
    "fix": "lower max_model_len below the printed estimate",
    "phase": "startup",
    "process": "EngineCore",
    "retry": False,
}
