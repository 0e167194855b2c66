"""Energy, memory, clocks and throttling of a window, from samples of known truth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.lib.metrics import of_subject
from scripts.lib.power_metrics import energy, power_metrics, power_notes

WINDOW = {"start_s": 100.0, "end_s": 110.0}
WATCH = {"absent": None, "gpus": [{"index": 0}]}
BLANK = dict.fromkeys(
    ("power_w", "energy_j", "memory_mib", "sm_mhz", "memory_mhz", "utilization", "temperature_c", "reasons")
)


def sample(at_s, **values):
    """One sample of as many GPUs as the values have items; a number stands for one GPU."""
    told = {name: value if isinstance(value, list) else [value] for name, value in values.items()}
    gpus = max(map(len, told.values()))
    return {"at_s": at_s} | {name: told.get(name, [None] * gpus) for name in BLANK}


def steady(power_w=400.0, **values):
    """From a second before the window to a second after it, twice a second."""
    times = [99 + step / 2 for step in range(25)]
    return [sample(t, power_w=power_w, energy_j=power_w * (t - 42), **values) for t in times]


def metrics(samples, tokens=1000, watch=WATCH, window=WINDOW):
    return power_metrics(watch, samples, window, tokens)


def test_a_steady_device():
    values, reasons = metrics(
        steady(memory_mib=2048, sm_mhz=1980, utilization=90, temperature_c=60, reasons=0)
    )
    assert reasons == {}
    assert values == pytest.approx(
        {
            "gpu_energy_j": 4000.0,
            "joules_per_token": 4.0,
            "gpu_power_mean_w": 400.0,
            "gpu_power_max_w": 400.0,
            "gpu_memory_peak_gib": 2.0,
            "gpu_clock_mean_mhz": 1980,
            "gpu_utilization": 90,
            "gpu_temperature_max_c": 60,
            "power_capped_share": 0.0,
            "slowdown_share": 0.0,
        }
    )


def test_without_a_counter_power_is_integrated():
    # 100 W rising to 300 W over the window: 200 W on average.
    samples = [sample(t, power_w=100 + 20 * (t - 100)) for t in (98, 101, 104, 107, 112)]
    assert metrics(samples)[0]["gpu_energy_j"] == pytest.approx(2000)


def test_the_counter_is_believed_over_the_power():
    samples = [sample(99, power_w=1, energy_j=50), sample(111, power_w=1, energy_j=1250)]
    assert metrics(samples)[0]["gpu_energy_j"] == pytest.approx(1000)


def test_several_gpus_are_summed():
    samples = [
        sample(99, power_w=[100, 200], energy_j=[0, 0], memory_mib=[1024, 2048], reasons=[0, 4]),
        sample(105, power_w=[150, 250], energy_j=[600, 1200], memory_mib=[1024, 3072], reasons=[0, 0]),
        sample(111, power_w=[100, 200], energy_j=[1200, 2400], memory_mib=[1024, 2048], reasons=[0, 0]),
    ]
    values, _ = metrics(samples, watch=WATCH | {"gpus": [{}, {}]})
    assert values["gpu_energy_j"] == pytest.approx(3000)
    assert values["gpu_power_max_w"] == 400
    assert values["gpu_memory_peak_gib"] == 4


def test_one_gpu_without_energy_leaves_the_sum_unknown():
    samples = [sample(t, power_w=[100, None], energy_j=[t, None]) for t in (99, 111)]
    values, reasons = metrics(samples, watch=WATCH | {"gpus": [{}, {}]})
    assert values["gpu_energy_j"] is None
    assert "does not tell" in reasons["joules_per_token"]


def test_unified_memory_is_absent_with_its_reason_and_the_rest_is_there():
    values, reasons = metrics(steady(sm_mhz=2400))
    assert values["gpu_memory_peak_gib"] is None
    assert "unified memory" in reasons["gpu_memory_peak_gib"]
    assert values["joules_per_token"] == pytest.approx(4)


@pytest.mark.parametrize(
    ("watch", "why"),
    [
        (None, "a version that did not watch"),
        ({"absent": "no NVIDIA driver answers on this machine"}, "no NVIDIA driver answers"),
    ],
)
def test_without_a_watch_everything_is_absent_with_the_reason(watch, why):
    values, reasons = metrics([], watch=watch)
    assert set(values) == set(reasons) == set(of_subject("power"))
    assert set(values.values()) == {None}
    assert all(why in reason for reason in reasons.values())


@pytest.mark.parametrize("window", [{"start_s": None, "end_s": None}, {"start_s": 5.0, "end_s": 5.0}])
def test_without_a_window_there_is_no_energy(window):
    values, reasons = metrics(steady(), window=window)
    assert set(values.values()) == {None}
    assert set(reasons) == set(values)


def test_samples_that_end_before_the_window_give_no_energy():
    values, reasons = metrics([entry for entry in steady() if entry["at_s"] < 105])
    assert values["gpu_energy_j"] is None
    assert "do not span" in reasons["gpu_energy_j"]
    assert values["gpu_power_max_w"] == 400


def test_no_tokens_no_energy_per_token():
    values, reasons = metrics(steady(), tokens=None)
    assert values["gpu_energy_j"] == pytest.approx(4000)
    assert "no tokens" in reasons["joules_per_token"]


def test_throttling_is_the_share_of_samples_inside_the_window():
    # Ten samples lie inside; heat in two of them, the power limit in five, both outside it always.
    samples = [sample(100.5 + n, reasons=(0x20 if n < 2 else 0) | (0x04 if n >= 5 else 0)) for n in range(10)]
    values, _ = metrics([sample(99, reasons=0x24), *samples, sample(111, reasons=0x24)])
    assert values["slowdown_share"] == pytest.approx(0.2)
    assert values["power_capped_share"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("bits", "words"),
    [(0x20, "heat"), (0x40, "heat"), (0x80, "power brake"), (0x08, "hardware slowdown")],
)
def test_heat_is_noted(bits, words):
    (note,) = power_notes([sample(105, reasons=bits | 1)], WINDOW)
    assert words in note


@pytest.mark.parametrize(
    ("at_s", "bits"), [(105, 0x01), (105, 0x04), (105, 0x02), (105, 0), (105, None), (99, 0x20)]
)
def test_idling_and_the_power_limit_are_not_noted_nor_what_is_outside(at_s, bits):
    assert power_notes([sample(at_s, reasons=bits)], WINDOW) == []


@given(
    st.lists(st.floats(0, 1000), min_size=2, max_size=30),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_energies_of_parts_add_up(powers, first, second):
    samples = [sample(float(index), power_w=power) for index, power in enumerate(powers)]
    last = float(len(powers) - 1)
    a, b = sorted((first * last, second * last))
    whole = energy(samples, 0, 0.0, last)
    parts = [energy(samples, 0, x, y) for x, y in ((0.0, a), (a, b), (b, last))]
    assert sum(parts) == pytest.approx(whole, rel=1e-6, abs=1e-6)
    assert min(powers) * last - 1e-6 <= whole <= max(powers) * last + 1e-6
