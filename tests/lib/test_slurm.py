"""Slurm's words as the workflow reads them, with stand-ins for its commands; tests/slurm has the real ones."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace

import pytest

from scripts.lib import slurm


def accompany(uncounted=()):
    slurm.accompany([], uncounted, None, logging.getLogger("test"), lambda rule: False)


def test_a_machine_without_slurm_is_told_so(slurm_commands):
    slurm_commands()
    Path("bin/sbatch").unlink()
    with pytest.raises(slurm.Refused, match="sbatch not found on PATH: start this on a login node"):
        accompany()


def test_jobs_of_an_earlier_run_in_this_folder_end_the_run(slurm_commands):
    rows = f"7|rule_group_x|None|{Path.cwd()}\n8|rule_group_x|None|/elsewhere\n9|(null)|None|{Path.cwd()}"
    slurm_commands(squeue=f"echo '{rows}'")
    assert slurm.jobs_of(Path.cwd()) == {"7": "None"}
    with pytest.raises(slurm.Refused, match="scancel 7$"):
        accompany()


def test_gpus_that_no_gres_asks_for_end_the_run(slurm_commands):
    slurm_commands()
    with pytest.raises(slurm.Refused, match=r"config/hardware/h100.yaml: slurm.gres is missing"):
        accompany(["h100"])


def test_why_a_job_waits_is_told_once_for_each_reason(slurm_commands, tmp_path):
    said = []
    queue = slurm.Queue(tmp_path, said.append)
    for reason in ("Priority", "PartitionTimeLimit", "PartitionTimeLimit", "QOSMaxGRESPerUser"):
        slurm_commands(squeue=f"echo '7|rule_group_x|{reason}|{tmp_path}'")
        queue.look()
    assert said == [
        "a job on the cluster, 7, waits for more than its turn: PartitionTimeLimit (squeue --jobs=7)",
        "a job on the cluster, 7, waits for more than its turn: QOSMaxGRESPerUser (squeue --jobs=7)",
    ]


def record(event, **fields):
    made = logging.makeLogRecord({"levelno": logging.ERROR, "event": SimpleNamespace(name=event)})
    made.__dict__.update(fields)
    return made


def test_a_lost_job_is_told_in_one_line(slurm_commands):
    slurm_commands(squeue="echo TIMEOUT")
    said = []
    handler = slurm.LostJobs(said.append, lambda rule: rule == "summarize")
    handler.emit(record("GROUP_ERROR", external_jobid="12", aux_logs=["logs/12.log"], job_error_info=[]))
    handler.emit(record("GROUP_ERROR", aux_logs=[], job_error_info=[]))
    build = {"rule_name": "build_engine", "aux": {"external_jobid": "13"}, "log": ["a.log", "logs/13.log"]}
    handler.emit(record("JOB_ERROR", indent=False, **build))
    handler.emit(record("JOB_ERROR", indent=True, **build))  # a job of a group, which was told
    handler.emit(
        record("JOB_ERROR", indent=False, rule_name="summarize", aux={}, log=[])
    )  # no job of the cluster
    handler.emit(record("PROGRESS"))
    assert said == [
        "a server's job on the cluster, 12, did not end well: TIMEOUT; its log: logs/12.log",
        "Slurm did not take a server's job",
        "the job of build_engine on the cluster, 13, did not end well: TIMEOUT; its log: logs/13.log",
    ]


def test_a_job_that_left_the_queue_has_no_state(slurm_commands):
    slurm_commands(squeue="exit 1")
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
    log.write_text("12:00:03  boot 1/2: again\n")
    follower.look()
    assert said[2:] == ["12:00:03  boot 1/2: again"], "Slurm has started the job once more"
    log.unlink()
    follower.look()
