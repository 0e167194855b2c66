from __future__ import annotations

import pytest

from tests.lib.test_feasibility_sglang import SGLANG, findings
from tests.planning import engine, hardware

SPARK = hardware(name="spark", unified_memory=True, max_gpu_memory_utilization=0.91)


@pytest.mark.parametrize(
    ("build", "flag"), [(engine(), "gpu-memory-utilization"), (SGLANG, "mem-fraction-static")]
)
def test_a_share_that_takes_the_host_with_it_is_refused(build, flag):
    level, message = findings("none", 0, build, machine=SPARK, flags={flag: 0.92})["memory-utilization"]
    assert level == "infeasible"
    assert f"{flag} 0.92 is over 0.91" in message
    assert findings("none", 0, build, machine=SPARK, flags={flag: 0.91}) == {}


def test_the_default_share_counts_where_the_flag_is_not_given():
    spark = hardware(
        unified_memory=True,
        max_gpu_memory_utilization=0.91,
        vllm_defaults={"gpu_memory_utilization": 0.92},
    )
    assert "the engine's default" in findings("none", 0, engine(), machine=spark)["memory-utilization"][1]


@pytest.mark.parametrize(
    ("build", "flag"), [(engine(), "gpu-memory-utilization"), (SGLANG, "mem-fraction-static")]
)
def test_a_share_that_is_not_known_could_take_the_host_with_it(build, flag):
    level, message = findings("none", 0, build, machine=SPARK)["memory-utilization"]
    assert (level, f"{flag} is not given" in message) == ("infeasible", True)
    assert message.endswith("give it, 0.91 at most")
    assert findings("none", 0, build) == {}, "a card with memory of its own hurts nobody else"


def test_on_a_device_with_memory_of_its_own_a_large_share_is_warned_of():
    card = hardware(max_gpu_memory_utilization=0.95)
    found = findings("none", 0, machine=card, flags={"mem-fraction-static": 0.97})
    assert found["memory-utilization"][0] == "warning"
