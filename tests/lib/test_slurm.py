"""Slurm's words as the workflow reads them, with stand-ins for its commands; tests/slurm has the real ones."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace

import pytest

from scripts.lib import slurm

REQUEST = {
    "slurm_partition": "big",
    "gres": "gpu:h100:2",
    "gpu": 2,
    "cpus_per_task": 4,
    "mem_mb": 900,
    "runtime": 31,
}


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """Puts stand-ins of this shell text on an otherwise empty PATH; squeue and sacct say nothing unless given."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()

    def put(**texts):
        for name, text in {"squeue": "", "sacct": "", "sbatch": "", **texts}.items():
            (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
            (tmp_path / "bin" / name).chmod(0o755)

    return put


def test_the_question_to_slurm_is_the_job_without_what_no_option_says():
    assert slurm.check_command(REQUEST) == [
        "sbatch", "--test-only", "--partition=big", "--gres=gpu:h100:2", "--cpus-per-task=4", "--mem=900", "--time=31", "--wrap=true",
    ]  # fmt: skip


def test_a_job_that_slurm_would_take_is_no_matter(commands):
    commands(sbatch="echo 'sbatch: Job 1 to start at 2026-01-01T00:00:00' >&2")
    said = []
    slurm.check([("h100", REQUEST)], said.append)
    assert said == []


def test_a_job_that_slurm_refuses_ends_the_run_with_place_problem_and_remedy(commands):
    commands(sbatch="echo 'sbatch: error: invalid partition specified: big' >&2; exit 1")
    with pytest.raises(slurm.Refused) as refused:
        slurm.check([("h100", REQUEST)], print)
    assert str(refused.value) == (
        "Slurm on h100: invalid partition specified: big. Compare the key slurm of config/hardware/h100.yaml with `sinfo`; this "
        "asks again: sbatch --test-only --partition=big --gres=gpu:h100:2 --cpus-per-task=4 --mem=900 --time=31 --wrap=true"
    )


WITH_ACCOUNT = [("h100", REQUEST | {"slurm_account": "lab"})]


@pytest.mark.parametrize(
    ("sacctmgr", "sshare"),
    [("echo Lab; echo other", ""), ("", "echo lab"), ("", ""), ("exit 1", "")],
    ids=["known to sacctmgr", "known to sshare", "no accounting", "no database"],
)
def test_an_account_that_the_plugin_takes_is_no_matter(commands, sacctmgr, sshare):
    commands(sacctmgr=sacctmgr, sshare=sshare)
    slurm.check(WITH_ACCOUNT, print)


@pytest.mark.parametrize(
    ("sacctmgr", "sshare", "said"),
    [
        ("echo other", "", "'lab' is none of your accounts (other)"),
        ("", "echo other", "'lab' is none of your accounts (other)"),
        ("exit 1", "exit 1", "'lab' cannot be checked here"),
    ],
)
def test_an_account_at_which_the_plugin_would_hang_ends_the_run(commands, sacctmgr, sshare, said):
    commands(sacctmgr=sacctmgr, sshare=sshare)
    with pytest.raises(slurm.Refused) as refused:
        slurm.check(WITH_ACCOUNT, print)
    assert said in str(refused.value)
    assert "config/hardware/h100.yaml: slurm.account" in str(refused.value)
    assert "export SBATCH_ACCOUNT=lab" in str(refused.value)


def test_nodes_that_are_down_are_waited_for(commands):
    commands(sbatch="echo 'allocation failure: Requested node configuration is not available' >&2; exit 1")
    said = []
    slurm.check([("h100", REQUEST)], said.append)
    assert "Requested node configuration is not available" in said[0]


def test_a_machine_without_slurm_is_told_so(commands):
    commands()
    Path("bin/sbatch").unlink()
    with pytest.raises(slurm.Refused, match="sbatch not found on PATH: start this on a login node"):
        slurm.accompany([], None, logging.getLogger("test"))


def test_jobs_of_an_earlier_run_in_this_folder_end_the_run(commands):
    rows = f"7|rule_group_x|{Path.cwd()}\n8|rule_group_x|/elsewhere\n9|(null)|{Path.cwd()}"
    commands(squeue=f"echo '{rows}'")
    assert slurm.jobs_of(Path.cwd()) == ["7"]
    with pytest.raises(slurm.Refused, match="scancel 7$"):
        slurm.accompany([], None, logging.getLogger("test"))


def record(event, **fields):
    made = logging.makeLogRecord({"levelno": logging.ERROR, "event": SimpleNamespace(name=event)})
    made.__dict__.update(fields)
    return made


def test_a_lost_job_is_told_in_one_line(commands):
    commands(squeue="echo TIMEOUT")
    said = []
    handler = slurm.LostJobs(said.append)
    handler.emit(record("GROUP_ERROR", external_jobid="12", aux_logs=["logs/12.log"], job_error_info=[]))
    handler.emit(record("GROUP_ERROR", aux_logs=[], job_error_info=[]))
    build = {"rule_name": "build_engine", "aux": {"external_jobid": "13"}, "log": ["a.log", "logs/13.log"]}
    handler.emit(record("JOB_ERROR", indent=False, **build))
    handler.emit(record("JOB_ERROR", indent=True, **build))  # a job of a group, which was told
    handler.emit(record("PROGRESS"))
    assert said == [
        "a server's job on the cluster, 12, did not end well: TIMEOUT; its log: logs/12.log",
        "Slurm did not take a server's job",
        "the job of build_engine on the cluster, 13, did not end well: TIMEOUT; its log: logs/13.log",
    ]


def test_a_job_that_left_the_queue_has_no_state(commands):
    commands(squeue="exit 1")
    assert slurm.state_of("12") == "gone from the queue"


def test_what_jobs_say_on_their_nodes_is_repeated_once_and_in_whole_lines(tmp_path):
    log = tmp_path / "group" / "1.log"
    log.parent.mkdir()
    log.write_text("12:00:00  boot 1/2: of an earlier run\n")
    said = []
    follower = slurm.Follower(tmp_path, said.append)
    with log.open("a") as file:
        file.write("Building DAG of jobs...\n12:00:01  boot 1/2: starting\n12:00:02  cell ")
    follower.look()
    with log.open("a") as file:
        file.write("1/4: done\n")
    follower.look()
    follower.look()
    assert said == ["12:00:01  boot 1/2: starting", "12:00:02  cell 1/4: done"]
    log.unlink()
    follower.look()
