"""What SGLang 0.5.15 says from its first line to "ready to roll", and when it is told to stop."""

from __future__ import annotations

from .cli import Launch
from .settings import Settings
from .sglang_log import SglangLog

VERSION = "0.5.15"
SERVING = "The server is fired up and ready to roll!"
"""The last line of a start-up."""


def banner(log: SglangLog, launch: Launch) -> None:
    """Warnings before the arguments; without the flag, slots are cut under speculation only."""
    log.raw(
        "",
        "UserWarning: 'python -m sglang.launch_server' is still supported, but 'sglang serve' is recommended.",
    )
    if launch.k and "max_running_requests" not in launch.flags:
        log.say("Max running requests is reset to 48 for speculative decoding.")


def configuration(
    log: SglangLog, launch: Launch, settings: Settings, max_model_len: int, k_reported: int
) -> None:
    """The resolved arguments, in one line."""
    flags = {name: value for name, value in launch.flags.items() if name not in ("model", "model_tag")}
    resolved = {
        "model_path": launch.model,
        "load_format": "auto",
        "context_length": max_model_len,
        "dtype": "auto",
        "quantization": None,
        "kv_cache_dtype": "auto",
        "mem_fraction_static": 0.85,
        "max_running_requests": launch.max_num_seqs,
        "chunked_prefill_size": 8192,
        "disable_radix_cache": False,
        "disable_overlap_schedule": False,
        "tp_size": 1,
        "pp_size": 1,
        "dp_size": 1,
        "decode_log_interval": 40,
        "attention_backend": "triton",
        "speculative_algorithm": None,
        "speculative_draft_model_path": None,
    } | flags
    resolved["speculative_num_draft_tokens"] = k_reported + 1 if launch.k else None
    listed = ", ".join(f"{name}={value!r}" for name, value in resolved.items())
    log.say(f"server_args=ServerArgs({listed})")


def weights(log: SglangLog, launch: Launch, settings: Settings) -> None:
    log.say("Init torch distributed ends. elapsed=0.19 s, mem usage=0.09 GB")
    log.say("Load weight begin. avail mem=139.09 GB")
    shards_done(log)
    free = 139.09 - settings.weights_gib
    log.say(
        f"Load weight end. elapsed={settings.weights_s:.2f} s, type=Qwen3ForCausalLM, avail mem={free:.2f} GB, "
        f"mem usage={settings.weights_gib:.2f} GB."
    )


def shards(log: SglangLog, done: int, total: int) -> None:
    log.write(
        f"\rLoading safetensors checkpoint shards: {done * 100 // total:3d}% Completed | {done}/{total}"
    )


def shards_done(log: SglangLog) -> None:
    shards(log, 1, 1)
    log.write("\n")


def memory(log: SglangLog, launch: Launch, settings: Settings, max_model_len: int) -> None:
    """The pool, the graphs and the line that sums them up."""
    half = settings.kv_available_gib / 2
    log.say(
        f"KV Cache is allocated. dtype: torch.bfloat16, #tokens: {settings.kv_cache_tokens}, K size: {half:.2f} GB, "
        f"V size: {half:.2f} GB"
    )
    log.say("Memory pool end. avail mem=41.72 GB")
    if settings.capture_s:
        log.say(
            f"Capture target decode CUDA graph end. elapsed={settings.capture_s:.2f} s, "
            f"mem usage={settings.capture_gib:.2f} GB, avail mem=40.66 GB."
        )
    log.say(
        f"max_total_num_tokens={settings.kv_cache_tokens}, chunked_prefill_size=8192, max_prefill_tokens=16384, "
        f"max_running_requests={launch.max_num_seqs}, context_len={max_model_len}, available_gpu_mem=40.66 GB"
    )


def serving(log: SglangLog, settings: Settings, host: str, port: int) -> None:
    """From the finished engine to the HTTP server and its own warm-up."""
    for line in settings.startup_log:
        log.given(line)
    log.uvicorn("Started server process [1]")
    log.uvicorn("Waiting for application startup.")
    log.uvicorn("Application startup complete.")
    log.uvicorn(f"Uvicorn running on http://{host}:{port} (Press CTRL+C to quit)")
    log.uvicorn('127.0.0.1:49482 - "POST /generate HTTP/1.1" 200 OK')
    log.say(SERVING)


def shutdown_begins(log: SglangLog) -> None:
    log.say("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
    log.say("Subprocess detokenizer (pid=682) crashed with exit code -15. Triggering SIGQUIT for cleanup...")
    log.say("SIGQUIT received. signum=None, frame=None. It usually means one child failed.")


def engine_stops(log: SglangLog) -> None:
    log.say("kill_process_tree called: parent_pid=606, include_parent=True, pid=606")


def engine_stopped(log: SglangLog) -> None:
    """Nothing more is said."""


def http_stops(log: SglangLog) -> None:
    engine_stops(log)


def uvicorn_stops(log: SglangLog, finished: bool = False) -> None:
    """SGLang kills its own process tree: uvicorn has no last word."""
