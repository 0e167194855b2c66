"""Room for jobs that wait."""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from scripts.lib.workers import kept_idle, make_room


def test_every_job_has_a_thread():
    executor = SimpleNamespace(workers=1, pool=ThreadPoolExecutor(max_workers=1))
    make_room(SimpleNamespace(_local_executor=None, _executor=executor), 3)
    meeting = threading.Barrier(4, timeout=5)
    assert sorted(job.result() for job in [executor.pool.submit(meeting.wait) for _ in range(4)]) == [
        0,
        1,
        2,
        3,
    ]


def test_on_a_cluster_the_local_jobs_get_it():
    local = SimpleNamespace(workers=1, pool=None)
    cluster = SimpleNamespace()
    make_room(SimpleNamespace(_local_executor=local, _executor=cluster), 3)
    assert local.workers == 4
    make_room(SimpleNamespace(_local_executor=None, _executor=cluster), 3)
    assert vars(cluster) == {}


@pytest.mark.parametrize(
    ("devices", "cores", "servers"),
    [
        (1, 1, [1, 1]),
        (2, 2, [1, 1, 2]),
        (4, 2, [2, 2, 2]),
        (4, 1, [1]),
        (1, 1, [2]),
        (2, 1, [10**6, 10**6]),
        (2, 1, []),
    ],
)
def test_nothing_is_said_where_cores_keep_no_gpu_idle(devices, cores, servers):
    assert kept_idle(devices, cores, servers) == []


@pytest.mark.parametrize(
    ("devices", "cores", "servers", "enough"), [(2, 1, [1, 1, 1], 2), (4, 2, [1, 2, 1], 3)]
)
def test_gpus_that_cores_keep_idle_are_told(devices, cores, servers, enough):
    (words,) = kept_idle(devices, cores, servers)
    assert words.endswith(f"--cores {enough}")
