"""What vLLM 0.27.1 says from its banner to "Application startup complete", and when it is told to stop."""

from __future__ import annotations

from .cli import VERSION, Launch
from .settings import Settings
from .vllm_log import STDERR, Log

SERVING = "HTTP server started"
"""The last line of a start-up."""
_GLYPHS = (
    "       █     █     █▄   ▄█",
    f" ▄▄ ▄█ █     █     █ ▀▄▀ █  version {VERSION}",
    "  █▄█▀ █     █     █     █  model   {model}",
    "   ▀▀  ▀▀▀▀▀ ▀▀▀▀▀ ▀     ▀",
)
_ROUTES = (
    "/openapi.json GET,HEAD;/docs GET,HEAD;/version GET;/health GET;/metrics GET;/tokenize POST;"
    "/v1/models GET;/v1/chat/completions POST;/v1/completions POST"
)
_PARALLEL_DRAFTING = ("dflash", "dspark")
_SYNCHRONOUS = ("ngram", "suffix", "draft_model")
_NO_DRAFT_WEIGHTS = ("none", "ngram", "suffix")


def banner(log: Log, launch: Launch) -> None:
    """The first lines: glyphs with version and model, and the arguments that are not defaults."""
    for line in ("", *_GLYPHS, ""):
        log.api("api_utils.py:345", line.format(model=launch.model))
    log.api("api_utils.py:273", f"non-default args: {launch.flags}")


def configuration(log: Log, launch: Launch, settings: Settings, max_model_len: int, k_reported: int) -> None:
    """Warnings about the configuration, and the engine's dump of it."""
    log.api("model.py:1883", f"Using max model len {max_model_len}")
    if launch.k:
        _speculation_warnings(log, launch, settings)
    log.engine("core.py:121", _config_dump(launch, settings, max_model_len, k_reported))
    if settings.platform == "cuda":
        log.engine(
            "cuda.py:482",
            "Using FLASH_ATTN attention backend out of potential backends: "
            "['FLASH_ATTN', 'FLASHINFER', 'TRITON_ATTN'].",
        )
    else:
        log.engine("selector.py:202", "Using HND KV cache layout for CPU_ATTN backend.")


def _speculation_warnings(log: Log, launch: Launch, settings: Settings) -> None:
    if launch.method in _SYNCHRONOUS:
        log.api(
            "vllm.py:1113",
            f"Async scheduling not supported with {launch.method}-based speculative decoding "
            "and will be disabled.",
            "WARNING",
        )
    slots = launch.k - 1 if launch.method in _PARALLEL_DRAFTING else int(launch.method == "draft_model")
    asked = launch.flag("max_num_batched_tokens", 8192 if settings.platform == "cuda" else 2048)
    budget = int(str(asked)) - slots * launch.max_num_seqs
    if budget < 8192:
        log.api(
            "vllm.py:1757",
            f"max_num_scheduled_tokens is set to {budget} based on the speculative decoding settings. "
            "This may lead to suboptimal performance. Consider increasing max_num_batched_tokens to "
            "accommodate the additional draft token slots, or decrease num_speculative_tokens or "
            "max_num_seqs.",
            "WARNING",
        )


def _config_dump(launch: Launch, settings: Settings, max_model_len: int, k_reported: int) -> str:
    draft = launch.drafter or (launch.model if launch.method == "mtp" else None)
    speculation = (
        f"SpeculativeConfig(method={launch.method!r}, model={draft!r}, num_spec_tokens={k_reported})"
        if launch.k
        else "None"
    )
    eager = bool(launch.flag("enforce_eager", False))
    return (
        f"Initializing a V1 LLM engine (v{VERSION}) with config: model={launch.model!r}, "
        f"speculative_config={speculation}, tokenizer={launch.model!r}, skip_tokenizer_init=False, "
        "tokenizer_mode=auto, revision=None, "
        f"tokenizer_revision=None, trust_remote_code={bool(launch.flag('trust_remote_code', False))}, "
        f"dtype=torch.{launch.flag('dtype', 'bfloat16')}, max_seq_len={max_model_len}, "
        "download_dir=None, load_format=auto, "
        f"tensor_parallel_size={launch.flag('tensor_parallel_size', 1)}, "
        "pipeline_parallel_size=1, data_parallel_size=1, "
        f"quantization={launch.flag('quantization')}, enforce_eager={eager}, "
        f"kv_cache_dtype={launch.flag('kv_cache_dtype', 'auto')}, device_config={settings.platform}, "
        f"seed={launch.flag('seed', 0)}, served_model_name={launch.served_names[0]}, "
        f"enable_prefix_caching={launch.prefix_caching}, enable_chunked_prefill=True, pooler_config=None, "
        f"compilation_config={{'mode': <CompilationMode.{'NONE: 0' if eager else 'VLLM_COMPILE: 3'}>, "
        "'cache_dir': '', 'backend': 'inductor', 'compile_sizes': None, 'cudagraph_capture_sizes': []}, "
        f"kernel_config=KernelConfig(moe_backend={str(launch.flag('moe_backend', 'auto'))!r}, "
        "linear_backend='auto')"
    )


def weights(log: Log, launch: Launch, settings: Settings) -> None:
    """Loading of the weights, the drafter's included."""
    cuda = settings.platform == "cuda"
    if cuda:
        log.engine("gpu_model_runner.py:5300", f"Starting to load model {launch.model}...")
    else:
        log.engine("cpu_model_runner.py:131", f"Starting to load model {launch.model}...")
    shards_done(log)
    log.engine("default_loader.py:430", f"Loading weights took {settings.weights_s:.2f} seconds")
    if launch.method != "none":
        where = "gpu_model_runner.py:5332" if cuda else "cpu_model_runner.py:138"
        log.engine(where, "Loading drafter model...")
        if launch.method not in _NO_DRAFT_WEIGHTS:
            log.engine("default_loader.py:430", f"Loading weights took {settings.weights_s / 10:.2f} seconds")
    if cuda:
        log.engine(
            "gpu_model_runner.py:5406",
            f"Model loading took {gib(settings.weights_gib)} GiB memory and {settings.weights_s:.6f} seconds",
        )


def shards(log: Log, done: int, total: int) -> None:
    """A step of the progress bar, which overwrites itself with carriage returns."""
    log.write(
        f"\r(EngineCore pid={log.pids['EngineCore']}) Loading safetensors checkpoint shards: "
        f"{done * 100 // total:3d}% Completed | {done}/{total} "
        f"[00:{done:02d}<00:{total - done:02d},  1.00s/it]",
        STDERR,
    )


def shards_done(log: Log) -> None:
    shards(log, 1, 1)
    log.write(f"\n(EngineCore pid={log.pids['EngineCore']}) \n", STDERR)


def memory(log: Log, launch: Launch, settings: Settings, max_model_len: int) -> None:
    """KV cache size and concurrency, capture, and the engine's own account of its start."""
    cuda = settings.platform == "cuda"
    if settings.compile_s:
        log.engine("monitor.py:53", f"torch.compile took {settings.compile_s:.2f} s in total")
    if cuda:
        log.engine("gpu_worker.py:564", f"Available KV cache memory: {gib(settings.kv_available_gib)} GiB")
    else:
        kept = gib(settings.kv_available_gib)
        log.engine("cpu_worker.py:248", f"Explicitly set ({kept}/23.09) GiB for KV cache on node 0.")
    log.engine("kv_cache_utils.py:2235", f"GPU KV cache size: {settings.kv_cache_tokens:,} tokens")
    log.engine(
        "kv_cache_utils.py:2236",
        f"Maximum concurrency for {max_model_len:,} tokens per request: "
        f"{settings.kv_cache_tokens / max_model_len:.2f}x",
    )
    if cuda and settings.capture_s:
        log.engine(
            "gpu_model_runner.py:6914",
            f"Graph capturing finished in {settings.capture_s:.0f} secs, took {settings.capture_gib:.2f} GiB",
        )
    compiled = f" (compilation: {settings.compile_s:.2f} s)" if settings.compile_s else ""
    log.engine(
        "core.py:348" if compiled else "core.py:355",
        f"init engine (profile, create kv cache, warmup model) took {settings.init_s:.2f} s{compiled}",
    )


def serving(log: Log, settings: Settings, host: str, port: int) -> None:
    """From the finished engine to the HTTP server."""
    for line in settings.startup_log:
        log.given(line)
    log.api("api_server.py:678", "Supported tasks: ['generate']")
    log.api("api_server.py:682", f"Starting vLLM server on http://{host}:{port}")
    log.api("launcher.py:37", "Available routes are:")
    for route in _ROUTES.split(";") if settings.routes else ():
        path, methods = route.split(" ")
        log.api("launcher.py:46", f"Route: {path}, Methods: {methods.replace(',', ', ')}")
    log.api("launcher.py:99", "API server: waiting for HTTP server to start")
    log.uvicorn(f"Started server process [{log.pids['APIServer']}]")
    log.uvicorn("Waiting for application startup.")
    log.uvicorn("Application startup complete.")
    log.api("launcher.py:105", "API server: HTTP server started")


def shutdown_begins(log: Log) -> None:
    """What a SIGTERM makes vLLM say before it stops its engine."""
    log.api("launcher.py:112", "[shutdown] API server: shutdown triggered")
    log.api("launcher.py:128", "[shutdown] API server: stopping engine client mode=abort timeout=0s")
    engine_stops(log)
    log.engine("core.py:1332", "[shutdown] EngineCore: trigger received signal=SIGTERM")
    log.engine("core.py:1468", "[shutdown] EngineCore: start mode=abort timeout=0s")
    log.engine(
        "core.py:1499", "[shutdown] EngineCore: request processing complete; starting resource teardown"
    )
    log.engine("core.py:1345", "[shutdown] EngineCore: exiting busy loop")


def engine_stops(log: Log) -> None:
    """The client's side of stopping the engine process."""
    log.api("core_client.py:686", "[shutdown] MPClient: start timeout=0s")
    log.api("core_client.py:688", "[shutdown] MPClient: stopping engine manager")
    log.api("utils.py:612", "[shutdown] Process manager: send sigterm to process EngineCore")
    log.api(
        "utils.py:632", "[shutdown] Process manager: force killing remaining processes count=1", "WARNING"
    )
    pid = log.pids["EngineCore"]
    log.api(
        "utils.py:637",
        f"[shutdown] Process manager: force killing remaining process EngineCore pid {pid}",
        "WARNING",
    )


def engine_stopped(log: Log) -> None:
    log.api("core_client.py:690", "[shutdown] MPClient: engine manager stopped")
    log.api("core_client.py:691", "[shutdown] MPClient: cleaning up background resources")
    log.api("core_client.py:693", "[shutdown] MPClient: complete")


def http_stops(log: Log) -> None:
    """The HTTP server's part of an orderly stop."""
    log.api("launcher.py:137", "[shutdown] API server: engine client stopped")
    log.api("launcher.py:140", "[shutdown] API server: signalling HTTP server shutdown")
    log.api("launcher.py:161", "[shutdown] API server: shutting down FastAPI HTTP server")


def uvicorn_stops(log: Log, finished: bool = False) -> None:
    log.uvicorn("Shutting down")
    log.uvicorn("Waiting for application shutdown.")
    log.uvicorn("Application shutdown complete.")
    if finished:
        log.uvicorn(f"Finished server process [{log.pids['APIServer']}]")


def gib(value: float) -> str:
    """GiB as vLLM rounds them: two decimals without trailing zeros, one kept."""
    return str(round(value, 2))
