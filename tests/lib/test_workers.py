"""Room for jobs that wait."""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

from scripts.lib.workers import make_room


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
