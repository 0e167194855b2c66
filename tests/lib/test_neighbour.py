from __future__ import annotations

from scripts.lib.neighbour import NEIGHBOUR_FIELDS, neighbour


def test_a_cell_that_had_its_device_to_itself():
    assert neighbour({}) == neighbour({"beside": None}) == dict.fromkeys(NEIGHBOUR_FIELDS)


def test_a_cell_with_a_busy_and_with_an_idle_neighbour():
    told = {"label": "nano none, chat at 2", "method": "mtp", "concurrency": 2, "tps": 55.5, "answers": 9}
    assert neighbour({"beside": told}) == {
        "beside": "nano none, chat at 2", "beside_method": "mtp", "beside_tps": 55.5,
    }  # fmt: skip
    assert neighbour({"beside": told | {"tps": None}})["beside_tps"] is None
