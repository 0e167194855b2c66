"""How vLLM 0.27.1 dies: one cause, told by up to three processes, most of them not knowing it."""

from __future__ import annotations

from .vllm_log import Log

DEFAULT_START_CAUSE = (
    "ValueError: moe_backend='marlin' is not supported for unquantized MoE. "
    "Expected one of ['triton', 'batched_triton', 'aiter']."
)
DEFAULT_RUN_CAUSE = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of "
    "139.80 GiB of which 1.12 GiB is free. Including non-PyTorch memory, this process has 138.60 GiB memory "
    "in use. Of the allocated memory 136.02 GiB is allocated by PyTorch, and 1.31 GiB is reserved by PyTorch "
    "but unallocated."
)
_WORKER_GONE = (
    "Exception: WorkerProc initialization failed due to an exception in a background process. "
    "See stack trace for root cause."
)
_ENGINE_FAILED = (
    "RuntimeError: Engine core initialization failed. See root cause above. "
    "Failed core proc(s): {'EngineCore': 1}"
)
_ENGINE_DEAD = (
    "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. "
    "See stack trace (above) for the root cause."
)

# Frames as (file, line, function, code); innermost last.
_WORKER_FRAMES = (
    ("vllm/v1/executor/multiproc_executor.py", 879, "worker_main", "worker = WorkerProc(*args, **kwargs)"),
    ("vllm/v1/executor/multiproc_executor.py", 648, "__init__", "self.worker.load_model()"),
    (
        "vllm/v1/worker/gpu_worker.py",
        442,
        "load_model",
        "self.model_runner.load_model(load_dummy_weights=dummy)",
    ),
    ("vllm/v1/worker/gpu_model_runner.py", 5332, "load_model", "self.drafter.load_model(self.model)"),
    (
        "vllm/model_executor/layers/fused_moe/layer.py",
        311,
        "__init__",
        "self.backend = select_backend(config)",
    ),
)
_ENGINE_FRAMES = (
    ("vllm/v1/engine/core.py", 1318, "run_engine_core", "engine_core = EngineCoreProc(*args, **kwargs)"),
    ("vllm/tracing/otel.py", 178, "sync_wrapper", "return func(*args, **kwargs)"),
    ("vllm/v1/engine/core.py", 1074, "__init__", "super().__init__("),
    ("vllm/v1/engine/core.py", 132, "__init__", "self.model_executor = executor_class(vllm_config)"),
    ("vllm/v1/executor/multiproc_executor.py", 108, "__init__", "super().__init__(vllm_config)"),
    ("vllm/v1/executor/abstract.py", 109, "__init__", "self._init_executor()"),
    (
        "vllm/v1/executor/multiproc_executor.py",
        201,
        "_init_executor",
        "self.workers = WorkerProc.wait_for_ready(unready)",
    ),
    ("vllm/v1/executor/multiproc_executor.py", 776, "wait_for_ready", "raise e from None"),
)
_KV_FRAMES = (
    *_ENGINE_FRAMES[:3],
    ("vllm/v1/engine/core.py", 143, "__init__", "kv_cache_config = self._initialize_kv_caches(vllm_config)"),
    ("vllm/v1/engine/core.py", 304, "_initialize_kv_caches", "kv_cache_configs = get_kv_cache_configs("),
    ("vllm/v1/core/kv_cache_utils.py", 778, "_check_enough_kv_cache_memory", "raise ValueError("),
)
_API_FRAMES = (
    ("vllm/entrypoints/openai/api_server.py", 804, "<module>", "uvloop.run(run_server(args))"),
    ("uvloop/__init__.py", 92, "run", "return runner.run(wrapper())"),
    ("uvloop/__init__.py", 48, "wrapper", "return await main"),
)
_API_START_FRAMES = (
    *_API_FRAMES,
    (
        "vllm/entrypoints/openai/api_server.py",
        764,
        "run_server",
        "await run_server_worker(address, sock, args)",
    ),
    (
        "vllm/entrypoints/openai/api_server.py",
        778,
        "run_server_worker",
        "async with build_async_engine_client(",
    ),
    (
        "vllm/entrypoints/openai/api_server.py",
        132,
        "build_async_engine_client",
        "async with build_from_engine_args(",
    ),
    (
        "vllm/entrypoints/openai/api_server.py",
        168,
        "build_from_engine_args",
        "async_llm = AsyncLLM.from_vllm_config(",
    ),
    ("vllm/v1/engine/async_llm.py", 220, "from_vllm_config", "return cls("),
    (
        "vllm/v1/engine/async_llm.py",
        149,
        "__init__",
        "self.engine_core = EngineCoreClient.make_async_mp_client(",
    ),
    ("vllm/v1/engine/core_client.py", 139, "make_async_mp_client", "return AsyncMPClient(*client_args)"),
    ("vllm/v1/engine/core_client.py", 987, "__init__", "super().__init__("),
    ("vllm/v1/engine/core_client.py", 609, "__init__", "with launch_core_engines("),
    ("vllm/v1/engine/utils.py", 1194, "launch_core_engines", "wait_for_engine_startup("),
    ("vllm/v1/engine/utils.py", 1253, "wait_for_engine_startup", "raise RuntimeError("),
)
_PORT_FRAMES = (
    *_API_FRAMES,
    (
        "vllm/entrypoints/openai/api_server.py",
        763,
        "run_server",
        "address, sock = setup_server(args, reuse_port=False)",
    ),
    ("vllm/entrypoints/openai/api_server.py", 642, "setup_server", "sock = create_server_socket(sock_addr)"),
    ("vllm/entrypoints/openai/api_server.py", 591, "create_server_socket", "sock.bind(addr)"),
)
_STEP_FRAMES = (
    ("vllm/v1/engine/core.py", 1342, "run_engine_core", "engine_core.run_busy_loop()"),
    ("vllm/v1/engine/core.py", 1386, "run_busy_loop", "self._process_engine_step()"),
    ("vllm/v1/engine/core.py", 1439, "_process_engine_step", "outputs, model_executed = self.step_fn()"),
    (
        "vllm/v1/engine/core.py",
        604,
        "step",
        "model_output = self.model_executor.sample_tokens(grammar_output)",
    ),
    (
        "vllm/v1/worker/gpu_model_runner.py",
        4589,
        "sample_tokens",
        "sampler_output = self._sample(logits, metadata)",
    ),
)
_OUTPUT_FRAMES = (
    ("vllm/v1/engine/async_llm.py", 680, "output_handler", "outputs = await engine_core.get_output_async()"),
    (
        "vllm/v1/engine/core_client.py",
        1101,
        "get_output_async",
        "raise self._format_exception(outputs) from None",
    ),
)


def traceback(frames: tuple, exception: str) -> str:
    """Python's text for these frames and this exception."""
    lines = ["Traceback (most recent call last):"]
    for file, number, function, code in frames:
        lines += [f'  File "site-packages/{file}", line {number}, in {function}', f"    {code}"]
        if not code.startswith("raise") and not code.endswith("("):
            lines.append("    " + "^" * len(code))
    return "\n".join([*lines, exception])


def death_at_start(log: Log, cause: str) -> None:
    """A worker that cannot start: first the cause, then two processes report its consequences at length."""
    log.record("Worker_TP0", "ERROR", "multiproc_executor.py:912", "WorkerProc failed to start.")
    log.record("Worker_TP0", "ERROR", "multiproc_executor.py:912", traceback(_WORKER_FRAMES, cause))
    log.engine("multiproc_executor.py:440", "[shutdown] Executor: waiting for worker exit count=1")
    log.engine("multiproc_executor.py:447", "[shutdown] Executor: all workers exited gracefully")
    _engine_reports(log, traceback(_ENGINE_FRAMES, _WORKER_GONE))


def cache_too_small(log: Log, max_model_len: int, kv_cache_tokens: int, kv_available_gib: float) -> None:
    """A context that does not fit into the KV cache: the engine itself finds out."""
    needed = kv_available_gib * max_model_len / kv_cache_tokens
    cause = (
        f"ValueError: To serve at least one request with the model's max seq len ({max_model_len}), "
        f"({needed:.2f} GiB KV cache is needed, which is larger than the available KV cache memory "
        f"({kv_available_gib} GiB). Based on the available memory, the estimated maximum model length is "
        f"{kv_cache_tokens}. Try increasing "
        "`gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."
    )
    _engine_reports(log, traceback(_KV_FRAMES, cause))


def _engine_reports(log: Log, text: str) -> None:
    log.engine("core.py:1349", "EngineCore failed to start.", "ERROR")
    log.engine("core.py:1349", text, "ERROR")
    log.raw("EngineCore", "Process EngineCore:\n" + text)
    log.raw("APIServer", traceback(_API_START_FRAMES, _ENGINE_FAILED))


def port_in_use(log: Log) -> None:
    log.raw("APIServer", traceback(_PORT_FRAMES, "OSError: [Errno 98] Address already in use"))


def death_at_run(log: Log, cause: str) -> None:
    """An engine that dies in a step, and the API server that only sees it gone."""
    log.engine("core.py:1351", "EngineCore encountered a fatal error.", "ERROR")
    log.engine("core.py:1351", traceback(_STEP_FRAMES, cause), "ERROR")
    engine_dead(log)


def engine_dead(log: Log) -> None:
    """What the API server says when its engine is gone, also at the end of a healthy run."""
    log.api("async_llm.py:724", "AsyncLLM output_handler failed.", "ERROR")
    log.api("async_llm.py:724", traceback(_OUTPUT_FRAMES, _ENGINE_DEAD), "ERROR")
