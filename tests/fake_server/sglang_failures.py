"""How SGLang 0.5.15 dies: the scheduler tells why, the main process only that a child is gone."""

from __future__ import annotations

from .sglang_log import SglangLog
from .vllm_failures import traceback

DEFAULT_START_CAUSE = "ModuleNotFoundError: No module named 'cutlass'"
DEFAULT_RUN_CAUSE = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 139.80 GiB of "
    "which 1.12 GiB is free."
)
_START_FRAMES = (
    ("sglang/srt/managers/scheduler.py", 4313, "run_scheduler_process", "scheduler = Scheduler("),
    ("sglang/srt/managers/scheduler.py", 423, "__init__", "self.init_model_worker()"),
    ("sglang/srt/managers/scheduler.py", 862, "init_all_cuda_graphs", "self.draft_worker.init_cuda_graphs()"),
)
_STEP_FRAMES = (
    ("sglang/srt/managers/scheduler.py", 4350, "run_scheduler_process", "scheduler.event_loop_overlap()"),
    (
        "sglang/srt/managers/scheduler.py",
        1411,
        "event_loop_overlap",
        "self.process_batch_result(batch, result)",
    ),
)
_POOL_FRAMES = (
    *_START_FRAMES[:2],
    ("sglang/srt/model_executor/model_runner.py", 2011, "init_memory_pool", "raise RuntimeError("),
)
_SIGQUIT = "Received sigquit from a child process. It usually means the child failed."


def death_at_start(log: SglangLog, cause: str) -> None:
    _scheduler(log, traceback(_START_FRAMES, cause))


def death_at_run(log: SglangLog, cause: str) -> None:
    _scheduler(log, traceback(_STEP_FRAMES, cause))


def cache_too_small(
    log: SglangLog, max_model_len: int, kv_cache_tokens: int, kv_available_gib: float
) -> None:
    cause = (
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. "
        f"Current value: self.server_args.mem_fraction_static={kv_available_gib / 140:.2f}"
    )
    _scheduler(log, traceback(_POOL_FRAMES, cause))


def _scheduler(log: SglangLog, text: str) -> None:
    log.say(f"Scheduler hit an exception: {text}\n")
    log.say(_SIGQUIT)


def port_in_use(log: SglangLog) -> None:
    log.uvicorn(
        "[Errno 98] error while attempting to bind on address ('127.0.0.1', 8000): address already in use"
    )


def engine_dead(log: SglangLog) -> None:
    """A healthy SGLang ends without an error."""
