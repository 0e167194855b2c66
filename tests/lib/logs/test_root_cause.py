"""The cause is found among everything a dying server prints; healthy ends are no failures."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.lib.logs import find_failure, parse_path
from scripts.lib.logs.root_cause import failure_of_line
from tests.lib.logs.golden import DATA
from tests.lib.logs.helpers import parse, sglang, vllm

READY = "(APIServer pid=1) INFO:     Application startup complete.\n"
START = vllm("Starting to load model x...", "Worker pid=61")
STOP = vllm("[shutdown] API server: shutdown triggered", "APIServer pid=1")


def trace(process: str, source: str, *lines: str) -> str:
    """A traceback as vLLM's logger prints it: the full head on every line."""
    body = [
        "Traceback (most recent call last):",
        '  File "vllm/x.py", line 5, in load_model',
        "    return f()",
        *lines,
    ]
    return "".join(vllm(line, process, "ERROR", source) for line in body)


def raw(process: str, *lines: str) -> str:
    """A traceback straight from the interpreter, only prefixed."""
    prefix = f"({process}) " if process else ""
    body = [
        "Traceback (most recent call last):",
        '  File "vllm/x.py", line 5, in f',
        "    return f()",
        *lines,
    ]
    return "".join(f"{prefix}{line}\n" for line in body)


def dead(process: str = "APIServer pid=1") -> str:
    return trace(
        process,
        "async_llm.py:704",
        "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above)",
    )


THREE_PROCESSES = (
    START
    + vllm("WorkerProc failed to start.", "Worker_TP1 pid=61", "ERROR", "multiproc_executor.py:700")
    + trace(
        "Worker_TP1 pid=61",
        "multiproc_executor.py:700",
        "ValueError: moe_backend='xyz' is not supported for unquantized MoE. Expected one of ['a', 'b'].",
    )
    + vllm("EngineCore failed to start.", "EngineCore pid=50", "ERROR", "core.py:1100")
    + trace(
        "EngineCore pid=50",
        "core.py:1100",
        "Exception: WorkerProc initialization failed due to an exception in a background process. See "
        "stack trace for root cause.",
    )
    + "(EngineCore pid=50) Process EngineCore:\n"
    + raw(
        "EngineCore pid=50",
        "Exception: WorkerProc initialization failed due to an exception in a background process.",
    )
    + raw(
        "APIServer pid=1",
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): "
        "{'EngineCore': 1}",
    )
)


def test_three_processes_one_cause() -> None:
    failure = parse(THREE_PROCESSES).failure
    assert failure.catalogue_id == "moe_backend_unquantized"
    assert (
        failure.root_line
        == "ValueError: moe_backend='xyz' is not supported for unquantized MoE. Expected one of ['a', 'b']."
    )
    assert (failure.line_number, failure.process, failure.phase) == (6, "Worker_TP1", "start")
    assert [link.role for link in failure.chain] == ["cause", "wrapper", "wrapper", "wrapper"]
    assert any("load_model" in line for line in failure.context)


def test_tracebacks_of_ranks_interleave_line_by_line() -> None:
    one = trace(
        "Worker_TP0 pid=60", "m.py:7", "torch.distributed.DistBackendError: NCCL error: remote process exited"
    ).splitlines(True)
    two = trace("Worker_TP1 pid=61", "m.py:7", "ValueError: something new").splitlines(True)
    mixed = "".join(line for pair in zip(one, two, strict=True) for line in pair)
    failure = parse(START + mixed).failure
    assert (failure.root_line, failure.process) == ("ValueError: something new", "Worker_TP1")
    assert failure.failure_class == "unknown"
    assert "something new" in failure.cause
    assert "victim" in [link.role for link in failure.chain]


def test_deepest_process_wins_even_if_it_comes_later() -> None:
    text = (
        START
        + trace("EngineCore pid=50", "core.py:1", "ValueError: engine says")
        + trace("Worker pid=61", "w.py:1", "ValueError: worker says")
    )
    assert parse(text).failure.root_line == "ValueError: worker says"


def test_earliest_in_the_deepest_process() -> None:
    text = (
        START
        + trace("Worker_TP0 pid=60", "w.py:1", "ValueError: first")
        + trace("Worker_TP1 pid=61", "w.py:1", "ValueError: second")
    )
    assert parse(text).failure.root_line == "ValueError: first"


def test_victims_alone_are_reported() -> None:
    text = START + trace("Worker_TP0 pid=60", "w.py:1", "TimeoutError: RPC call to execute_model timed out.")
    failure = parse(text).failure
    assert failure.catalogue_id == "worker_stuck"
    assert failure.failure_class == "resource_start"
    assert parse(READY + text).failure.failure_class == "resource_runtime"


def test_worker_prefix_missing_is_inferred_from_the_file() -> None:
    text = START + trace(
        "EngineCore pid=50", "core.py:1", "Exception: WorkerProc initialization failed due to an exception"
    )
    bare = "".join(
        f"ERROR 11-29 19:44:13 [multiproc_executor.py:912] {line}\n"
        for line in ("Traceback (most recent call last):", '  File "x"', "ValueError: odd")
    )
    failure = parse(bare + text).failure
    assert (failure.root_line, failure.process) == ("ValueError: odd", "Worker")


def test_raw_traceback_without_any_prefix() -> None:
    failure = parse(START + raw("", "ValueError: nobody knows") + dead()).failure
    assert failure.root_line == "ValueError: nobody knows"


def test_direct_cause_names_the_first_exception() -> None:
    text = START + raw(
        "Worker pid=61",
        "ValueError: the cause",
        "",
        "The above exception was the direct cause of the following exception:",
        "",
        "Traceback (most recent call last):",
        '  File "vllm/y.py", line 5, in g',
        "RuntimeError: the effect",
    )
    failure = parse(text).failure
    assert failure.root_line == "ValueError: the cause"
    assert ("direct consequence", "RuntimeError: the effect") in [
        (link.role, link.text) for link in failure.chain
    ]


DURING = (
    "",
    "During handling of the above exception, another exception occurred:",
    "",
    "Traceback (most recent call last):",
)


def test_during_handling_of_a_lookup_the_second_says_more() -> None:
    text = START + raw(
        "APIServer pid=1",
        "KeyError: 'nemotron_x'",
        *DURING,
        '  File "transformers/y.py", line 5, in g',
        "ValueError: The checkpoint you are trying to load has model type `nemotron_x` but Transformers "
        "does not recognize this architecture.",
    )
    assert parse(text).failure.catalogue_id == "model_type_unknown"
    unknown = START + raw(
        "APIServer pid=1",
        "KeyError: 'x'",
        *DURING,
        '  File "y.py", line 5, in g',
        "ValueError: no such thing x",
    )
    assert parse(unknown).failure.root_line == "ValueError: no such thing x"


def test_during_handling_in_a_shutdown_the_first_counts() -> None:
    text = READY + raw(
        "EngineCore pid=50",
        "ValueError: the cause",
        *DURING,
        '  File "vllm/core.py", line 747, in shutdown',
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
    )
    assert parse(text).failure.root_line == "ValueError: the cause"


def test_message_lines_belong_to_the_exception_and_the_advice_is_not_the_error() -> None:
    text = READY + trace(
        "EngineCore pid=50",
        "core.py:1",
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
        "Search for `cudaErrorIllegalAddress' in https://docs.nvidia.com",
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
    )
    failure = parse(text).failure
    assert failure.root_line.startswith("torch.AcceleratorError")
    assert failure.context[-1].startswith("Compile with")


PYDANTIC = "pydantic_core._pydantic_core.ValidationError: 1 validation error for SpeculativeConfig"


def test_pydantic_value_error() -> None:
    text = START + raw(
        "APIServer pid=1",
        PYDANTIC,
        "  Value error, num_speculative_tokens:3 must be divisible by n_predict=2 [type=value_error, "
        "input_value=ArgsKwargs((), {}), input_type=ArgsKwargs]",
        "    For further information visit https://errors.pydantic.dev/2.14/v/value_error",
    )
    failure = parse(text).failure
    assert failure.root_line == "num_speculative_tokens:3 must be divisible by n_predict=2"
    assert failure.values == {"k": 3, "n_predict": 2}
    assert failure.line_number == 6


def test_pydantic_field_error() -> None:
    text = START + raw(
        "APIServer pid=1",
        PYDANTIC,
        "lookup",
        "  Unexpected keyword argument [type=unexpected_keyword_argument, input_value=4]",
    )
    assert parse(text).failure.root_line == "lookup: Unexpected keyword argument"


@pytest.mark.parametrize("program", ["api_server.py", "vllm serve", "vllm", "launch_server.py"])
def test_argument_errors(program: str) -> None:
    failure = parse(f"usage: {program} [-h]\n{program}: error: unrecognized arguments: --what\n").failure
    assert (failure.catalogue_id, failure.failure_class, failure.phase) == (
        "arguments_unknown",
        "infeasible",
        "start",
    )


def test_tool_errors_are_not_argument_errors() -> None:
    assert (
        parse("slurmstepd: error: Detected 1 oom_kill event in StepId=5.0\n").failure.catalogue_id
        == "host_oom_kill"
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("docker: Error response from daemon: could not select device driver.", "container_gpu_runtime"),
        ("docker: Error response from daemon: driver failed: port is already allocated.", "port_in_use"),
        ("FATAL:   could not open image /x.sif: no such file", "container_image"),
        ("docker: Error response from daemon: something new.", None),
    ],
)
def test_container_that_never_started(line: str, expected: str | None) -> None:
    failure = find_failure(parse(line + "\n"), exit_status=125)
    assert failure.catalogue_id == expected
    assert failure.root_line == line


def test_job_ended_by_the_batch_system() -> None:
    line = "slurmstepd: error: *** JOB 123 ON node1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***\n"
    failure = find_failure(parse(START + line), exit_status=143)
    assert (failure.catalogue_id, failure.failure_class) == ("job_time_limit", "transient")


def test_log_cut_right_behind_the_announcement() -> None:
    line = vllm("EngineCore encountered a fatal error.", "EngineCore pid=50", "ERROR", "core.py:1")
    assert parse(READY + line).failure.catalogue_id == "engine_dead"


def test_quoted_root_in_a_wrapper_is_used_when_nothing_else_is_left() -> None:
    text = START + trace(
        "EngineCore pid=50",
        "core.py:1",
        "RuntimeError: Worker failed with error 'odd thing happened', please check the stack trace above "
        "for the root cause",
    )
    assert parse(text).failure.root_line == "odd thing happened"
    victim = text + trace(
        "Worker pid=61", "w.py:1", "torch.distributed.DistBackendError: NCCL error: remote exited"
    )
    assert parse(victim).failure.root_line == "odd thing happened"
    better = text + trace("Worker pid=61", "w.py:1", "ValueError: odd thing happened")
    assert parse(better).failure.root_line == "ValueError: odd thing happened"


def test_engine_that_died_without_a_word() -> None:
    failure = parse(READY + dead()).failure
    assert (failure.catalogue_id, failure.failure_class) == ("engine_dead", "unknown")


KILLED = DATA / "h200_crash_engine_core_killed.log.gz"


def test_an_engine_core_that_was_killed_is_told_as_such_and_not_sent_to_the_lines_above() -> None:
    """SIGKILL to vLLM's EngineCore in the middle of its work: the API server closes in good order and exits with 0."""
    failure = find_failure(KILLED, exit_status=0, ended="exited")
    assert (failure.catalogue_id, failure.failure_class) == ("engine_dead", "unknown")
    assert "nothing in this log says why: it was killed (host memory, a limit, somebody)" in failure.cause
    assert "dmesg" in failure.fix
    assert "above" not in failure.cause + failure.fix
    assert find_failure(KILLED, exit_status=-9).catalogue_id == "host_oom_kill"


@pytest.mark.parametrize("status", [-9, 137])
def test_silent_death_and_kill_is_host_memory(status: int) -> None:
    for text in (READY + dead(), START):
        failure = find_failure(parse(text), exit_status=status)
        assert (failure.catalogue_id, failure.failure_class) == ("host_oom_kill", "transient")


def test_last_phase_is_named() -> None:
    assert "weights" in find_failure(parse(START), exit_status=-9).cause


@pytest.mark.parametrize(
    ("status", "words"), [(-11, "SIGSEGV"), (139, "SIGSEGV"), (-6, "SIGABRT"), (134, "SIGABRT")]
)
def test_native_crash(status: int, words: str) -> None:
    failure = find_failure(parse(START), exit_status=status)
    assert words in failure.cause
    assert failure.failure_class == "unknown"


def test_exit_status_does_not_hide_a_cause() -> None:
    for status in (0, 1, -9, None):
        assert (
            find_failure(parse(THREE_PROCESSES), exit_status=status).catalogue_id == "moe_backend_unquantized"
        )


def test_killed_child_named_in_the_log() -> None:
    text = (
        READY
        + vllm(
            "Worker proc VllmWorker-0 died unexpectedly (exit code: -9), shutting down executor.",
            "EngineCore pid=50",
            "ERROR",
        )
        + dead()
    )
    failure = parse(text).failure
    assert (failure.catalogue_id, failure.process, failure.phase) == ("host_oom_kill", "EngineCore", "run")
    wrapped = START + raw(
        "APIServer pid=1",
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): "
        "{'EngineCore_DP1': -9}",
    )
    assert parse(wrapped).failure.catalogue_id == "host_oom_kill"


def test_child_that_exited_after_an_exception_is_a_wrapper() -> None:
    text = (
        START
        + trace("Worker pid=61", "w.py:1", "ValueError: odd")
        + vllm("Worker proc VllmWorker-0 died unexpectedly (exit code: 1)", "EngineCore pid=50", "ERROR")
    )
    assert parse(text).failure.root_line == "ValueError: odd"


@pytest.mark.parametrize(
    "line",
    [
        "Out of memory: Killed process 61 (python3) total-vm:1kB",
        "Killed",
        "run.sh: line 5: 4242 Killed                  vllm serve m",
    ],
)
def test_kernel_and_shell_reports_of_a_kill(line: str) -> None:
    assert parse(START + line + "\n").failure.catalogue_id == "host_oom_kill"


@pytest.mark.parametrize(
    "line",
    [
        "Segmentation fault (core dumped)",
        "Fatal Python error: Aborted",
        "!!!!!!! Segfault encountered !!!!!!!",
    ],
)
def test_native_crash_named_in_the_log(line: str) -> None:
    assert parse(START + line + "\n").failure.catalogue_id == "terminated_by_signal"


def test_request_line_that_says_killed_is_nothing() -> None:
    assert (
        parse(
            READY + vllm("Received request c-1: prompt: 'He was Killed. Aborted', params", "APIServer pid=1")
        ).failure
        is None
    )


# -- healthy ends --------------------------------------------------------------------------------------------


def test_clean_shutdown_that_ends_in_a_traceback() -> None:
    assert parse(READY + STOP + dead()).failure is None
    stop = vllm("[shutdown] EngineCore: trigger received signal=SIGTERM", "EngineCore pid=50")
    assert parse(READY + stop + dead()).failure is None


def test_sglang_stopped_by_sigterm() -> None:
    text = (
        sglang("The server is fired up and ready to roll!")
        + sglang("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
        + sglang(
            "Subprocess scheduler_0 (pid=1251) crashed with exit code -15. Triggering SIGQUIT for cleanup..."
        )
        + sglang("SIGQUIT received. signum=None, frame=None. It usually means one child failed.")
    )
    assert parse(text).failure is None


def test_crash_before_the_shutdown_line_counts() -> None:
    text = READY + trace("Worker pid=61", "w.py:1", "ValueError: odd") + dead() + STOP + dead()
    assert parse(text).failure.root_line == "ValueError: odd"


def test_startup_failure_whose_traceback_comes_after_the_engine_was_stopped() -> None:
    stop = vllm("[shutdown] EngineCore: trigger received signal=SIGTERM", "EngineCore pid=50")
    text = START + stop + raw("APIServer pid=1", "OSError: [Errno 98] Address already in use")
    assert parse(text).failure.catalogue_id == "port_in_use"


def test_interrupted_start_is_no_failure() -> None:
    assert parse(START + raw("APIServer pid=1", "KeyboardInterrupt: terminated")).failure is None
    assert parse(START + raw("APIServer pid=1", "SystemExit: 0")).failure is None


@pytest.mark.parametrize(
    "line",
    [
        "Found ulimit of 20000 and failed to automatically increase. This can cause fd limit errors like "
        "`OSError: [Errno 24] Too many open files`.",
        "[Autotuner]: Skipping tactic, OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "Custom allreduce is disabled because your platform lacks GPU P2P capability",
        "Ignore import error when loading x: No module named 'cutlass'",
    ],
)
def test_warnings_that_quote_errors_are_no_failures(line: str) -> None:
    assert parse(READY + vllm(line, level="WARNING")).failure is None
    assert parse(sglang(line)).failure is None


def test_leaked_semaphores_are_no_failure() -> None:
    text = (
        READY
        + STOP
        + "resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 1 leaked semaphore "
        "objects\n"
    )
    assert parse(text).failure is None


# -- requests ------------------------------------------------------------------------------------------------


def test_refused_request_leaves_the_server_alive() -> None:
    text = READY + trace(
        "APIServer pid=1",
        "serving_chat.py:1",
        "ValueError: This model's maximum context length is 8192 tokens. However",
    )
    failure = parse(text).failure
    assert (failure.failure_class, failure.fatal, failure.values) == (
        "request",
        False,
        {"max_model_len": 8192},
    )


def test_survived_handler_exception_is_not_fatal() -> None:
    text = (
        READY
        + "(APIServer pid=1) ERROR:    Exception in ASGI application\n"
        + raw("APIServer pid=1", "ValueError: odd")
    )
    failure = parse(text).failure
    assert (failure.root_line, failure.fatal) == ("ValueError: odd", False)


def test_refused_request_does_not_explain_a_later_death() -> None:
    refused = trace(
        "APIServer pid=1",
        "serving_chat.py:1",
        "ValueError: This model's maximum context length is 8192 tokens.",
    )
    assert parse(READY + refused + dead()).failure.catalogue_id == "engine_dead"
    crash = trace("Worker pid=61", "w.py:1", "ValueError: odd")
    assert parse(READY + refused + crash + dead()).failure.root_line == "ValueError: odd"


def test_many_refusals_do_not_bury_the_crash() -> None:
    refused = trace(
        "APIServer pid=1",
        "serving_chat.py:1",
        "ValueError: This model's maximum context length is 8192 tokens.",
    )
    text = READY + refused * 3000 + trace("Worker pid=61", "w.py:1", "ValueError: odd") + dead()
    assert parse(text).failure.root_line == "ValueError: odd"


def test_a_flood_of_error_lines_does_not_bury_the_crash() -> None:
    flood = "".join(vllm(f"{n} request failed", "APIServer pid=1", "ERROR") for n in range(5000))
    text = READY + flood + trace("Worker pid=61", "w.py:1", "ValueError: odd") + dead()
    assert parse(text).failure.root_line == "ValueError: odd"


# -- phases and endings --------------------------------------------------------------------------------------

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.10 GiB."


def test_memory_at_start_and_at_run_time_are_different_classes() -> None:
    assert parse(START + trace("Worker pid=61", "w.py:1", OOM)).failure.failure_class == "resource_start"
    assert (
        parse(START + READY + trace("Worker pid=61", "w.py:1", OOM)).failure.failure_class
        == "resource_runtime"
    )


def test_caller_may_know_better_whether_it_served() -> None:
    report = parse(START + trace("Worker pid=61", "w.py:1", OOM))
    assert find_failure(report, ready=True).failure_class == "resource_runtime"


def test_capture_is_told_by_the_stack() -> None:
    body = raw("Worker pid=61", OOM).replace("in f\n", "in capture_model\n")
    assert parse(START + body).failure.catalogue_id == "oom_in_capture"


def test_not_ready_in_time() -> None:
    failure = find_failure(parse(START), ended="timeout")
    assert (failure.catalogue_id, failure.failure_class) == ("not_ready", "transient")
    assert "weights" in failure.cause


def test_not_ready_while_ranks_wait() -> None:
    text = START + vllm(
        "No available shared memory broadcast block found in 60 seconds. This typically happens"
    )
    assert parse(text).failure is None
    assert find_failure(parse(text), ended="timeout").catalogue_id == "rank_waits"


def test_stopped_on_purpose() -> None:
    for ended in ("stopped", "running"):
        assert find_failure(parse(START), exit_status=-15, ended=ended) is None
    assert find_failure(parse(START), exit_status=-15).catalogue_id == "stopped"
    assert find_failure(parse(READY + STOP), exit_status=143) is None


def test_healthy_log_and_good_exit() -> None:
    for status in (None, 0):
        assert find_failure(parse(READY), exit_status=status) is None


def test_bad_exit_without_any_trace() -> None:
    failure = find_failure(parse(START), exit_status=1)
    assert (failure.failure_class, failure.line_number) == ("unknown", None)
    assert "exit status 1" in failure.cause


def test_unknown_ending_is_refused() -> None:
    with pytest.raises(ValueError, match="is none of"):
        find_failure(parse(START), ended="exploded")


def test_path_is_accepted() -> None:
    assert find_failure(DATA / "failure_port_in_use.log").catalogue_id == "port_in_use"
    with pytest.raises(FileNotFoundError):
        find_failure(Path("/nowhere/at.log"))


def test_truncated_real_logs_are_explained_by_how_they_ended() -> None:
    report = parse_path(DATA / "h200_fail_gpu_util.log")
    assert report.failure is None
    assert "profiling" in find_failure(report, exit_status=137).cause


# -- SGLang, Ray and others ----------------------------------------------------------------------------------


def test_sglang_scheduler_exception_and_its_wrapper() -> None:
    text = (
        sglang("Load weight begin. avail mem=10.00 GB", " TP0")
        + sglang("Scheduler hit an exception: Traceback (most recent call last):", " TP0")
        + '  File "scheduler.py", line 1, in run_scheduler_process\n    x()\n'
        + "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: "
        "0.84\n\n" + sglang("Received sigquit from a child process. It usually means the child failed.")
    )
    failure = parse(text).failure
    assert (failure.catalogue_id, failure.process, failure.memory_direction) == (
        "pool_too_small_sglang",
        "TP0",
        "raise",
    )
    assert failure.line_number == 5


def test_sglang_capture_chain_takes_the_specific_entry() -> None:
    text = (
        sglang("Scheduler hit an exception: Traceback (most recent call last):")
        + '  File "cuda_graph_runner.py", line 1, in capture\n'
        + OOM
        + "\n"
        + "\n".join(DURING)
        + '\n  File "cuda_graph_runner.py", line 9, in __init__\n'
        + "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 1.20 "
        "GiB\nPossible solutions:\n1. set --mem-fraction-static\n"
    )
    assert parse(text).failure.catalogue_id == "capture_failed_sglang"


def test_sglang_wrapper_alone() -> None:
    failure = parse(
        sglang("Received sigquit from a child proces. It usually means the child failed.")
    ).failure
    assert (failure.catalogue_id, failure.failure_class) == ("child_failed_sglang", "unknown")
    assert "nothing in this log says why" in failure.cause
    assert "dmesg" in failure.fix


def test_sglang_watchdog() -> None:
    text = sglang("The server is fired up and ready to roll!") + sglang(
        "Watchdog timeout (self.watchdog_timeout=300)"
    )
    assert parse(text).failure.catalogue_id == "watchdog_sglang"


def test_ray_task_error_names_the_remote_exception() -> None:
    text = START + raw(
        "EngineCore pid=50",
        "ray.exceptions.RayTaskError(ValueError): ray::RayWorkerWrapper.execute_method() (pid=77, "
        "ip=10.0.0.9)",
        '  File "worker.py", line 3, in load_model',
        "ValueError: no such layer",
    )
    assert parse(text).failure.root_line == "ValueError: no such layer"


def test_exception_group() -> None:
    text = (
        READY
        + "(EngineCore pid=50)   + Exception Group Traceback (most recent call last):\n"
        + '(EngineCore pid=50)   |   File "x.py", line 1, in f\n'
        + "(EngineCore pid=50)   | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n"
    )
    assert parse(text).failure.root_line.startswith("ExceptionGroup")


def test_bare_exception_line() -> None:
    assert parse(f"(Worker_TP0 pid=9) {OOM}\n").failure.process == "Worker_TP0"


def test_coloured_and_wrapped_crash() -> None:
    coloured = "".join(
        f"2025-03-04T05:06:07.1Z \x1b[31m{line}\x1b[0m\n" for line in THREE_PROCESSES.splitlines()
    )
    assert parse(coloured).failure.catalogue_id == "moe_backend_unquantized"


def test_carriage_returns_between_the_lines_of_a_record() -> None:
    assert parse(THREE_PROCESSES.replace("\n", "\r\n")).failure.line_number == 6


def test_single_line() -> None:
    assert (
        failure_of_line(
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."
        ).memory_direction
        == "raise"
    )
    assert failure_of_line("all is well") is None
