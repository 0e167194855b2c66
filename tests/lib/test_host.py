"""Who used the processors: from two looks of known truth, and once from this machine's own /proc."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from scripts.lib.host import Look, ProcessTimes, host_state, in_container, look, tree

CLIENT, SERVER, WORKER, OTHER = 10, 20, 21, 30


def moment(busy_s, own, ended=None, steal_s=0.0, parents=None, at_s=0.0):
    """A look in which each of the pids in `own` has used so many seconds; all of them began at the start of time."""
    names = {CLIENT: "client", SERVER: "server", WORKER: "worker", OTHER: "backup"}
    parents = {WORKER: SERVER} | (parents or {})
    return Look(
        at_s,
        busy_s,
        steal_s,
        1.5,
        {
            (pid, 0.0): ProcessTimes(
                parents.get(pid, 1), names.get(pid, "x"), used, (ended or {}).get(pid, 0.0)
            )
            for pid, used in own.items()
        },
    )


def state(before, after, server=frozenset({SERVER, WORKER}), cpus=4):
    """Ten seconds later."""
    return host_state(before, replace(after, at_s=before.at_s + 10), server, frozenset({CLIENT}), cpus)


def test_what_is_left_of_the_busy_time_is_foreign():
    before = moment(100.0, {CLIENT: 5, SERVER: 50, WORKER: 10, OTHER: 7})
    after = moment(116.0, {CLIENT: 6, SERVER: 55, WORKER: 14, OTHER: 12}, steal_s=2.0)
    told = state(before, after)
    assert told["client_cpu_s"] == 1
    assert told["server_cpu_s"] == 9
    assert told["foreign_cpu_s"] == 6
    assert told["foreign_cpu_share"] == pytest.approx(6 / 40)
    assert told["steal_s"] == 2
    assert told["foreign_processes"] == [{"pid": OTHER, "name": "backup", "cpu_s": 5}]


def test_a_quiet_machine_has_no_foreign_load():
    before = moment(100.0, {CLIENT: 5, SERVER: 50, WORKER: 10, OTHER: 7})
    after = moment(109.98, {CLIENT: 6, SERVER: 55, WORKER: 14, OTHER: 7})
    told = state(before, after)
    assert told["foreign_cpu_s"] == 0, "clock ticks may not add up to less than nothing"
    assert told["foreign_processes"] == []


def test_the_servers_children_that_ended_are_the_servers():
    before = moment(100.0, {CLIENT: 0, SERVER: 50, WORKER: 10})
    after = moment(115.0, {CLIENT: 0, SERVER: 50}, ended={SERVER: 25})
    told = state(before, after)
    assert told["server_cpu_s"] == 15
    assert told["foreign_cpu_s"] == 0


def test_a_process_that_came_and_went_is_foreign_though_it_has_no_name():
    before, after = moment(100.0, {CLIENT: 0, SERVER: 0}), moment(108.0, {CLIENT: 0, SERVER: 0})
    told = state(before, after)
    assert told["foreign_cpu_s"] == 8
    assert told["foreign_processes"] == []


def test_a_new_process_with_an_old_pid_is_counted_from_zero():
    before = moment(100.0, {CLIENT: 0, SERVER: 0, OTHER: 50})
    after = moment(103.0, {CLIENT: 0, SERVER: 0})
    after.processes[OTHER, 99.0] = ProcessTimes(1, "backup", 3.0, 0.0)
    assert state(before, after)["foreign_processes"] == [{"pid": OTHER, "name": "backup", "cpu_s": 3.0}]


def test_a_kernel_that_does_not_count_is_replaced_by_the_processes():
    before = moment(0.0, {CLIENT: 0, SERVER: 0, WORKER: 0, OTHER: 1})
    after = moment(0.0, {CLIENT: 1, SERVER: 9, WORKER: 0, OTHER: 3})
    told = state(before, after)
    assert (told["foreign_cpu_s"], told["foreign_by"]) == (2, "processes")


def test_a_server_of_somebody_else_cannot_be_told_from_the_rest():
    told = state(moment(0, {CLIENT: 0, OTHER: 0}), moment(9, {CLIENT: 1, OTHER: 8}), server=None)
    assert told["server_cpu_s"] is None
    assert told["foreign_cpu_share"] is None
    assert told["foreign_processes"] == []
    assert told["busy_cpu_s"] == 9


def test_the_largest_five_are_named():
    own = {CLIENT: 0, SERVER: 0} | dict.fromkeys(range(100, 120), 0.0)
    after = moment(190, {CLIENT: 0, SERVER: 0} | {pid: pid - 100.0 for pid in range(100, 120)})
    named = state(moment(0, own), after)["foreign_processes"]
    assert [process["pid"] for process in named] == [119, 118, 117, 116, 115]


def test_a_tree_is_all_descendants_and_a_missing_root_alone():
    processes = moment(0, {1: 0, SERVER: 0, WORKER: 0, 22: 0, OTHER: 0}, parents={22: WORKER}).processes
    assert tree(processes, [SERVER]) == {SERVER, WORKER, 22}
    assert tree(processes, [77]) == {77}
    assert tree(processes, []) == frozenset()


def test_no_process_is_in_a_container_that_is_not_there():
    processes = {
        (os.getpid(), 0.0): ProcessTimes(1, "python", 0, 0),
        (2**22 + 1, 0.0): ProcessTimes(1, "gone", 0, 0),
    }
    assert in_container(processes, "f" * 64) == frozenset()


BURN = (
    "import os, sys, time\nwhile sum(os.times()[:2]) < 0.3: pass\nprint('done', flush=True)\nsys.stdin.read()"
)


def test_this_machine_is_read():
    """A child that burns 0.3 s is a server whose time is known, or somebody else's."""
    child = subprocess.Popen(
        [sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    before = look()
    child.stdout.readline()
    after = look()
    child.communicate("")
    as_server = host_state(before, after, frozenset({child.pid}), frozenset({os.getpid()}), os.cpu_count())
    assert 0.1 < as_server["server_cpu_s"] < 1
    as_foreign = host_state(before, after, frozenset(), frozenset({os.getpid()}), os.cpu_count())
    assert as_foreign["foreign_cpu_s"] > 0.1
