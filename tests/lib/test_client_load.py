"""How late the client's loop ran: a blocked one shows it, a quiet one does not."""

import asyncio
import gc
import time

import pytest

from scripts.lib.client_load import LoadMeter, no_collection


def watched(*steps):
    """The load of a loop that awaits these in turn; a number is seconds of standing still."""

    async def run():
        with LoadMeter() as meter:
            for step in steps:
                if isinstance(step, float):
                    time.sleep(step)
                else:
                    await step()
        return meter.load

    return asyncio.run(run())


async def idle():
    await asyncio.sleep(0.05)


def test_a_blocked_loop_is_late():
    load = watched(idle, 0.3, idle)
    assert load.lag_max_s >= 0.28
    assert load.lag_p99_s >= 0.25, "thirty moments of forty lie in the standstill, not one"
    assert load.wall_s >= 0.4


def test_a_loop_blocked_to_the_end_is_late():
    assert watched(0.3).lag_max_s >= 0.28


def test_an_idle_loop_is_not_late():
    # Other processes may hold this one up at any time, but hardly at all times.
    assert min(watched(idle).lag_max_s for _ in range(40)) < 0.02


def test_cpu_is_counted_and_waiting_is_not():
    async def work():
        until = time.process_time() + 0.1
        while time.process_time() < until:
            pass

    busy, quiet = watched(work), watched(idle, idle)
    assert busy.cpu_s >= 0.1
    assert busy.cpu_share == pytest.approx(busy.cpu_s / busy.wall_s)
    assert quiet.cpu_s < 0.05


def test_the_window_is_the_meters():
    before = time.time()
    load = watched(idle)
    assert before <= load.started_at <= time.time()
    assert load.window["end_s"] - load.window["start_s"] == pytest.approx(load.window["wall_s"], abs=1e-5)


def test_no_sample_is_due_after_the_end():
    async def run():
        with LoadMeter() as meter:
            await idle()
        await idle()
        return meter

    meter = asyncio.run(run())
    assert len(meter._lags_s) <= meter.load.wall_s / 0.01


def test_garbage_is_collected_again_after_a_window_even_a_failed_one():
    def fail():
        with no_collection():
            seen.append(gc.isenabled())
            raise KeyError

    seen = []
    with pytest.raises(KeyError):
        fail()
    assert [*seen, gc.isenabled()] == [False, True]
