"""What is asked of Slurm before a run, with stand-ins for its commands; tests/slurm has the real ones."""

from __future__ import annotations

import pytest

from scripts.lib import slurm_ahead as ahead

REQUEST = {
    "slurm_partition": "big",
    "gres": "gpu:h100:2",
    "gpu": 2,
    "cpus_per_task": 4,
    "mem_mb": 900,
    "runtime": 31,
}


def test_the_question_to_slurm_is_the_job_without_what_no_option_says():
    assert ahead.check_command(REQUEST) == [
        "sbatch", "--test-only", "--partition=big", "--gres=gpu:h100:2", "--cpus-per-task=4", "--mem=900", "--time=31", "--wrap=true",
    ]  # fmt: skip


def test_a_job_that_slurm_would_take_is_no_matter(slurm_commands):
    slurm_commands(sbatch="echo 'sbatch: Job 1 to start at 2026-01-01T00:00:00' >&2")
    said = []
    ahead.check([("h100", REQUEST)], said.append)
    assert said == []


def test_a_job_that_slurm_refuses_ends_the_run_with_place_problem_and_remedy(slurm_commands):
    slurm_commands(sbatch="echo 'sbatch: error: invalid partition specified: big' >&2; exit 1")
    with pytest.raises(ahead.Refused) as refused:
        ahead.check([("h100", REQUEST)], print)
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
def test_an_account_that_the_plugin_takes_is_no_matter(slurm_commands, sacctmgr, sshare):
    slurm_commands(sacctmgr=sacctmgr, sshare=sshare)
    ahead.check(WITH_ACCOUNT, print)


@pytest.mark.parametrize(
    ("sacctmgr", "sshare", "said"),
    [
        ("echo other", "", "'lab' is none of your accounts (other)"),
        ("", "echo other", "'lab' is none of your accounts (other)"),
        ("exit 1", "exit 1", "'lab' cannot be checked here"),
    ],
)
def test_an_account_at_which_the_plugin_would_hang_ends_the_run(slurm_commands, sacctmgr, sshare, said):
    slurm_commands(sacctmgr=sacctmgr, sshare=sshare)
    with pytest.raises(ahead.Refused) as refused:
        ahead.check(WITH_ACCOUNT, print)
    assert said in str(refused.value)
    assert "config/hardware/h100.yaml: slurm.account" in str(refused.value)
    assert "export SBATCH_ACCOUNT=lab" in str(refused.value)


NO_NODE = "echo 'allocation failure: Requested node configuration is not available' >&2; exit 1"


@pytest.mark.parametrize(
    "states", ["idle down", "mix drain", "idle*", ""], ids=["down", "drained", "silent", "unknown"]
)
def test_nodes_that_are_away_are_waited_for(slurm_commands, states):
    slurm_commands(sbatch=NO_NODE, sinfo=f"printf '%s\\n' {states}")
    said = []
    ahead.check([("h100", REQUEST)], said.append)
    assert "Requested node configuration is not available" in said[0]


def test_what_no_node_has_ends_the_run_when_all_nodes_are_there(slurm_commands):
    slurm_commands(sbatch=NO_NODE, sinfo="printf '%s\\n' idle mix- alloc")
    with pytest.raises(ahead.Refused, match="or lower the server's parallel sizes; this asks again"):
        ahead.check([("h100", REQUEST)], print)


PARTITIONS = "printf '%s\\n' 'small*|10:00' 'big|30:59' 'long|2-01:00:00' 'open|infinite'"


@pytest.mark.parametrize("partition", ["small", "big", "small,big", None])
def test_a_job_over_the_time_of_its_partition_ends_the_run(slurm_commands, partition):
    slurm_commands(sinfo=PARTITIONS)
    request = {name: value for name, value in REQUEST.items() if name != "slurm_partition"}
    request |= {"slurm_partition": partition} if partition else {}
    with pytest.raises(
        ahead.Refused, match=r"minutes at most, and a server .* asks for 31; lower measurement.cell_limit_s"
    ):
        ahead.check([("h100", request)], print)
    ahead.check([("h100", request | {"qos": "long"})], print)


@pytest.mark.parametrize("partition", ["long", "open", "big,open", "unheard"])
def test_a_job_within_the_time_of_its_partition_is_no_matter(slurm_commands, partition):
    slurm_commands(sinfo=PARTITIONS)
    ahead.check([("h100", REQUEST | {"slurm_partition": partition})], print)


@pytest.mark.parametrize(
    ("limit", "read"),
    [("10:00", 10), ("1:30:00", 90), ("2-01:00:59", 2940), ("infinite", None), ("n/a", None)],
)
def test_limits_as_sinfo_prints_them(limit, read):
    assert ahead.minutes(limit) == read
