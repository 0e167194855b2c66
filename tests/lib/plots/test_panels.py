"""What panels share goes into the subtitle, what differs heads them, and nothing is dropped silently."""

from __future__ import annotations

from scripts.lib.plots.naming import SETTING, named
from scripts.lib.plots.panels import split
from tests.results_factory import METHODS, sweep, tables


def test_one_setting_is_one_panel_and_all_of_it_is_shared() -> None:
    panels = split(named(tables(sweep(repeats=1))[1]), SETTING)
    assert panels.shared == "cpu · vllm · smollm2 · max_model_len 1024 · scenario code"
    assert (panels.count, panels.note, panels.frame["panel"].unique().to_list()) == (1, "", [""])


def test_what_differs_heads_the_panels() -> None:
    records = sweep(repeats=1, max_model_len=(1024, 2048), scenario=("chat", "code"))
    panels = split(named(tables(records)[1]), SETTING)
    assert panels.shared == "cpu · vllm · smollm2"
    assert panels.frame["panel"].unique(maintain_order=True).to_list() == [
        "max_model_len 1024 · scenario chat",
        "max_model_len 1024 · scenario code",
        "max_model_len 2048 · scenario chat",
        "max_model_len 2048 · scenario code",
    ]


def test_panels_beyond_the_limit_are_dropped_and_counted() -> None:
    records = sweep(METHODS[:1], (1,), repeats=1, max_model_len=tuple(range(1024, 1024 + 20)))
    panels = split(named(tables(records)[1]), SETTING, most=12)
    assert panels.frame["panel"].n_unique() == panels.count == 12
    assert panels.note == "12 of 20 panels; the others are in results/tables."


def test_every_machine_keeps_its_share_of_the_panels() -> None:
    lengths = tuple(range(1024, 1024 + 9))
    records = sweep(METHODS[:1], (1,), repeats=1, hardware=("cpu", "h200"), max_model_len=lengths)
    panels = split(named(tables(records)[1]), SETTING, most=4)
    assert panels.frame["panel"].unique(maintain_order=True).to_list() == [
        "cpu · max_model_len 1024",
        "cpu · max_model_len 1025",
        "h200 · max_model_len 1024",
        "h200 · max_model_len 1025",
    ]


def test_no_rows_are_no_error() -> None:
    panels = split(named(tables([])[1]), SETTING)
    assert (panels.shared, len(panels.frame)) == ("", 0)
