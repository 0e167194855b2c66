"""Rule verify_schedule: a schedule that was derived after the run was planned is not compared."""

from __future__ import annotations

import json

from scripts.verify_schedule import CHANGED, verify_schedule


def test_a_schedule_that_was_just_derived_asks_for_another_run(tmp_path, capsys):
    path = tmp_path / "schedule.json"
    server = {"hardware": "h", "engine": "e", "model": "m", "method": "mtp", "k": 3, "max_model_len": 1024}
    entry = {
        "name": "mtp-schedule",
        "server": server,
        "ranges": [[1, 8, 3]],
        "best_k": {"1": 3},
        "fixed_k": 3,
    }
    path.write_text(json.dumps({"schedules": [entry | {"scenarios": ["code"]}], "notes": []}))
    assert (
        verify_schedule(path, tmp_path / "records.parquet", {"schedules": []}, tmp_path / "out.parquet") == 1
    )
    assert CHANGED in capsys.readouterr().out
    assert not (tmp_path / "out.parquet").exists()
