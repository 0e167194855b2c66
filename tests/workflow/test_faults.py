"""Faults a night run meets.

After each: no process left within 10 s, no finished cell lost or measured again, the next run completes.
"""

import os
import signal
import time
from pathlib import Path

import pytest

from scripts.lib.guard import children
from tests.processes import running_with, wait_for
from tests.workflow.project import CELLS_ALONE

SLOW = {"step_s": {"none": 0.004, "default": 0.08}}
ALL = ["none len1024 c1", "none len1024 c4", "mtp k3 len1024 c1", "mtp k3 len1024 c4"]


def processes(project, *words):
    """The project's processes whose command line contains all of `words`."""

    def words_of(pid):
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
        except OSError:
            return ""

    return [pid for pid in running_with(project.marker) if all(word in words_of(pid) for word in words)]


def run_until(project, text, limit_s=200):
    """Start the sweep and return when `text` is on the console."""
    process = project.start()
    wait_for(lambda: text in project.console or process.poll() is not None, limit_s, repr(text))
    assert process.poll() is None, project.console
    return process


def at_measured_prompts(**fault):
    """The same fault of mtp at every measured prompt, and only there: start-up, gate and warm-up are well."""
    return [fault | {"method": "mtp", "contains": text} for text in ("LRU", "intervals")]


def everything_gone(project, process=None, limit_s=10):
    began = time.monotonic()
    wait_for(
        lambda: not running_with(project.marker), limit_s, f"processes to go: {running_with(project.marker)}"
    )
    if process:
        process.wait()
    return time.monotonic() - began


def completes(project, expected):
    """The next run, with a healthy server, measures exactly `expected` and ends well."""
    project.truth = project.truth | {"step_s": 0.004}
    project.faults()
    project.run()
    assert project.measured == expected
    assert project.cells()["status"].to_list() == ["measured"] * 4
    assert "Nothing to be done" in project.run()


@pytest.mark.parametrize("how", ["ctrl-c", "SIGTERM", "SIGKILL"])
def test_the_end_of_snakemake_in_the_middle_of_a_cell(project, how):
    project.target = CELLS_ALONE
    project.truth |= SLOW
    project.save()
    process = run_until(project, "mtp k3 len1024 short c1: warming up")
    if how == "ctrl-c":
        os.killpg(process.pid, signal.SIGINT)
    else:
        os.kill(process.pid, getattr(signal, how))
    everything_gone(project, process)
    completes(project, ALL[2:])


@pytest.mark.parametrize("whose", ["serve", "measure"])
def test_sigkill_of_a_job(project, whose):
    project.target = CELLS_ALONE
    project.truth |= SLOW
    project.save()
    process = run_until(project, "mtp k3 len1024 short c1: warming up")
    script = "scripts.serve" if whose == "serve" else "scripts.measure_cell"
    victims = (
        processes(project, script, "mtp/k3")
        if whose == "serve"
        else processes(project, script, "mtp/k3", "/c1/r1/")
    )
    assert victims
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    process.wait(200)
    assert process.returncode != 0
    everything_gone(project)
    completes(project, ALL[2:])


def test_sigkill_of_the_server_in_the_middle_of_a_cell(project):
    """A crash without a cause in the log: that cell fails, the others of the boot get a new start."""
    project.truth |= SLOW
    project.save()
    process = run_until(project, "mtp k3 len1024 short c1: warming up")
    (guard,) = processes(project, "guard.py")
    (pid,) = children()[guard]
    os.kill(pid, signal.SIGKILL)
    # Two seconds on a machine that is not shared; the bound here is for one that is.
    wait_for(lambda: "FAILED" in project.console, 8, "the death to be noticed")
    process.wait(300)
    everything_gone(project)
    assert process.returncode == 1
    assert "1 of 4 cells failed: read results/tables/failures.md" in project.console
    row = project.cell("mtp", 1)
    assert row["status"] == "failed"
    assert "137" in row["failure_cause"] or "SIGKILL" in row["failure_cause"] or "-9" in row["failure_cause"]
    assert project.cell("mtp", 4)["status"] == "measured"
    completes(project, ["mtp k3 len1024 c1"])


def test_a_server_that_never_becomes_ready(project):
    project.save(startup={"limit_s": 3, "stall_s": 2})
    project.faults({"kind": "never_ready", "method": "mtp"})
    output = project.run(status=1)
    everything_gone(project)
    assert "2 of 4 cells failed: read results/tables/failures.md" in output
    assert project.measured == ALL[:2]
    row = project.cell("mtp", 4)
    assert (row["status"], row["failure_phase"]) == ("failed", "startup")
    assert "not ready after" in row["failure_cause"]
    assert row["per_request_tps"] is None
    completes(project, ALL[2:])


def test_a_slow_start_is_given_time_while_the_log_moves(project):
    project.target = CELLS_ALONE
    project.save(startup={"limit_s": 1, "stall_s": 3})
    project.faults({"kind": "slow_start", "method": "mtp", "s": 5, "log": True})
    project.run()
    assert project.measured == ALL


def test_a_server_that_cannot_start_names_its_root_cause(project):
    cause = "ValueError: num_speculative_tokens:3 must be divisible by n_predict=2"
    project.faults({"kind": "die_at_start", "method": "mtp", "cause": cause})
    output = project.run(status=1)
    everything_gone(project)
    assert cause in output
    row = project.cell("mtp", 1)
    assert row["failure_root_line"].endswith(cause)
    assert row["failure_class"] == "infeasible"
    assert cause in (project.folder / "results/tables/failures.md").read_text()
    again = project.run(status=1)
    assert project.starts == [], "a combination that cannot work is not tried again"
    assert "2 of 4 cells failed" in again
    project.save(allow_failures=True)
    project.run(status=0)
    assert project.starts == []


def test_a_server_that_answers_500(project):
    project.faults(*at_measured_prompts(kind="http_500"))
    project.run(status=1)
    everything_gone(project)
    row = project.cell("mtp", 1)
    assert row["status"] == "failed"
    assert row["aggregate_tps"] is None
    assert "500" in row["failure_cause"] or "500" in " ".join(row["reasons"])
    completes(project, ALL[2:])


def test_a_first_completion_that_fails_is_not_ready(project):
    project.faults({"kind": "http_500", "method": "mtp"})
    project.run(status=1)
    row = project.cell("mtp", 1)
    assert row["failure_phase"] == "startup"
    assert "first completion failed" in row["failure_cause"]


@pytest.mark.parametrize("kind", ["hang_mid_stream", "close_early"])
def test_single_requests_that_fail_are_kept_as_failed(project, kind):
    project.faults({"kind": kind, "method": "mtp", "contains": "LRU", "times": 1, "after_tokens": 5})
    project.run()
    row = project.cell("mtp", 1)
    assert row["status"] == "measured"
    assert (row["requests"], row["completed"], row["failed"]) == (4, 3, 1)
    text = (project.evidence("mtp", 3, 1) / "requests.jsonl").read_text()
    assert ("without a byte" if kind == "hang_mid_stream" else "closed early") in text


def test_a_server_that_hangs_for_good(project):
    project.save(measurement=project.matrix["measurement"] | {"stall_timeout_s": 1})
    project.faults(*at_measured_prompts(kind="hang_mid_stream"))
    project.run(status=1, limit_s=180)
    everything_gone(project)
    assert project.cell("mtp", 1)["status"] == "failed"
    completes(project, ALL[2:])


def test_memory_that_runs_out_at_higher_concurrency(project):
    """F14: lower concurrency stays valid, higher is skipped with the reason, nothing above it is tried."""
    project.save(concurrency=[1, 4, 8])
    project.faults({"kind": "oom_at_concurrency", "method": "mtp", "concurrency": 4})
    output = project.run(status=1)
    everything_gone(project)
    assert project.cell("mtp", 1)["status"] == "measured"
    four, eight = project.cell("mtp", 4), project.cell("mtp", 8)
    assert four["failure_class"] == eight["failure_class"] == "resource_runtime"
    assert "OutOfMemoryError" in four["failure_root_line"]
    assert "skipped: at concurrency 4" in eight["failure_cause"]
    assert len(project.starts) == 2, output


def test_an_engine_that_dies_under_one_cell_costs_that_cell_alone(project):
    once = str(project.folder / "once")
    fault = {
        "kind": "die_at_request",
        "cause": "RuntimeError: the kernel lost its way",
        "exit_code": 0,
        "once": once,
    }
    project.faults(fault | {"method": "mtp", "contains": "LRU", "times": 1})
    project.run(status=1)
    everything_gone(project)
    assert "the kernel lost its way" in project.cell("mtp", 1)["failure_root_line"]
    assert project.cell("mtp", 4)["status"] == "measured"


def test_an_illegal_memory_access_at_concurrency_8_is_one_failed_cell(project):
    """As dflash on an H200 (tests/data/logs/h200_dflash_k3): one request at a time is fine, eight are not."""
    project.save(concurrency=[1, 8])
    project.faults({"kind": "die_at_request", "method": "mtp", "concurrency": 8})
    project.run(status=1)
    everything_gone(project)
    cell = project.cell("mtp", 8)
    assert (cell["status"], cell["failure_class"]) == ("failed", "resource_runtime")
    assert "an illegal memory access was encountered" in cell["failure_root_line"]
    others = [
        project.cell(method, concurrency) for method, concurrency in (("none", 1), ("none", 8), ("mtp", 1))
    ]
    assert {other["status"] for other in others} == {"measured"}
    assert "illegal memory access" in (project.folder / "results/tables/failures.md").read_text()


def test_a_busy_port_is_tried_again_at_once(project):
    project.target = CELLS_ALONE
    project.faults({"kind": "port_busy", "method": "mtp", "once": str(project.folder / "once")})
    output = project.run()
    assert "trying once more" in output
    assert project.measured == ALL


def test_servers_that_ignore_sigterm_do_not_stay(project):
    project.target = CELLS_ALONE
    project.faults({"kind": "ignore_sigterm"})
    project.run()
    assert project.measured == ALL
    everything_gone(project)


@pytest.mark.parametrize("how", ["SIGTERM", "SIGKILL"])
def test_with_the_grace_that_users_have_a_server_that_ignores_sigterm_is_gone_in_time(project, how):
    """The other tests shorten stop_grace_s; what is promised must hold without."""
    project.target = CELLS_ALONE
    del project.matrix["stop_grace_s"]
    project.truth |= SLOW
    project.faults({"kind": "ignore_sigterm"})
    process = run_until(project, "mtp k3 len1024 short c1: warming up")
    os.kill(process.pid, getattr(signal, how))
    took = everything_gone(project, process)
    print(f"gone after {took:.1f} s")
    completes(project, ALL[2:])


def test_damaged_evidence_is_measured_again_alone(project):
    project.target = CELLS_ALONE
    project.run()
    for concurrency, harmed in ((1, lambda data: data[: len(data) // 2]), (4, lambda data: bytes(len(data)))):
        path = project.evidence("mtp", 3, concurrency) / "requests.jsonl"
        path.chmod(0o644)
        path.write_bytes(harmed(path.read_bytes()))
    assert project.run("why").count("damaged") >= 2
    completes(project, ["mtp k3 len1024 c1", "mtp k3 len1024 c4"])


def test_a_full_disk_is_one_clear_error_and_loses_nothing(project):
    """The store lies on a file system of its own that is full when the second server's cells are to be written."""
    store = project.folder / "store"
    store.mkdir()
    if os.system(f"mount -t tmpfs -o size=512k tmpfs '{store}' 2>/dev/null") != 0:
        pytest.skip("needs the right to mount a tmpfs")
    try:
        project.run("--config", "method=[{name: none}]", status=None)
        filler = store / "filler"
        with filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 1024)
            except OSError:
                pass
        output = project.run(status=1)
        everything_gone(project)
        assert "No space left on device" in output
        assert "Nothing measured before is lost" in output
        filler.unlink()
        completes(project, ALL[2:])
    finally:
        os.system(f"umount '{store}'")


def test_two_sweeps_on_one_device_wait_for_each_other(project, tmp_path_factory):
    project.target = CELLS_ALONE
    from tests.workflow.project import Project

    other = Project(tmp_path_factory.mktemp("other"))
    other.marker, other.locks = project.marker, project.locks
    first, second = project.start(), other.start()
    assert first.wait(300) == 0, project.console
    assert second.wait(300) == 0, other.console
    assert "waiting for the device" in project.console + other.console


def test_two_runs_in_one_folder_are_refused(project):
    project.truth |= SLOW
    project.save()
    process = run_until(project, "mtp k3 len1024 short c1: warming up")
    import subprocess

    second = subprocess.run(
        project.command(),
        cwd=project.folder,
        env=project.environment,
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert second.returncode == 1
    assert f"another run is active in this folder (process {process.pid})" in second.stdout + second.stderr
    os.kill(process.pid, signal.SIGTERM)
    everything_gone(project, process)
