"""KV cache and start-up: facts of a boot, shared by its cells."""

from __future__ import annotations

from scripts.lib.tables.cells import cells_table
from scripts.lib.tables.kv_cache import kv_cache_table, kv_cache_text
from scripts.lib.tables.startup import startup_table, startup_text
from tests.evidence_factory import cell
from tests.lib.tables.reading import body
from tests.record_factory import failed, infeasible, measured, mislabelled


def server(method: str, k: int, tokens: int | None, repeat: int = 1, **more: object) -> list[dict]:
    """Two cells of one boot."""
    return [measured(cell(method, k, c, repeat=repeat), 10.0, kv_cache_tokens=tokens, **more) for c in (1, 4)]


def test_one_row_per_server_with_the_loss_against_none() -> None:
    table = kv_cache_table(cells_table(server("none", 0, 46592) + server("mtp", 1, 44592, weights_gib=1.5)))
    assert table["kv_cache_tokens"].to_list() == [46592, 44592]
    assert [round(change, 2) for change in table["kv_cache_change"]] == [0.0, -4.29]
    assert body(kv_cache_text(table)) == [
        ["none", "-", "46,592", "0.0", "-"],
        ["mtp", "1", "44,592", "-4.3", "1.50"],
    ]


def test_boots_count_once_however_many_cells_they_had() -> None:
    records = (
        server("none", 0, 100, repeat=1) + server("none", 0, 300, repeat=2) + server("none", 0, 200, repeat=3)
    )
    table = kv_cache_table(cells_table(records))
    assert table["kv_cache_tokens"].to_list() == [200]
    assert table["measured"].to_list() == [3]
    assert "Median of 3 repeats" in " ".join(kv_cache_text(table))


def test_a_server_that_did_not_start_shows_why_and_hides_no_other() -> None:
    records = [*server("none", 0, 100), failed(cell("mtp", 1)), infeasible(cell("mtp", 3))]
    rows = body(kv_cache_text(kv_cache_table(cells_table(records))))
    assert [row[2] for row in rows] == ["100", "failed", "infeasible"]


def test_a_server_that_died_at_high_concurrency_keeps_its_facts() -> None:
    records = [measured(cell("mtp", 1, 1), 10.0, kv_cache_tokens=500), failed(cell("mtp", 1, 32))]
    table = kv_cache_table(cells_table(records))
    assert table["kv_cache_tokens"].to_list() == [500]


def test_a_mislabelled_server_shows_no_figure() -> None:
    records = [*server("none", 0, 100), mislabelled(cell("mtp", 3), 10.0, kv_cache_tokens=77, init_s=3.0)]
    rows = body(kv_cache_text(kv_cache_table(cells_table(records))))
    assert [row[2] for row in rows] == ["100", "mislabelled"]
    assert body(startup_text(startup_table(cells_table(records))))[1][2] == "mislabelled"


def test_metrics_that_no_server_has_are_named_not_tabulated() -> None:
    records = [measured(cell(), 10.0, startup_ready_s=34.75, init_s=2.02)]
    lines = startup_text(startup_table(cells_table(records)))
    assert body(lines) == [["none", "-", "34.8", "2.0"]]
    assert "No server reported: healthy, load model" in " ".join(lines)


def test_empty_and_all_failed() -> None:
    for table, text in ((kv_cache_table, kv_cache_text), (startup_table, startup_text)):
        assert "Nothing was measured." in " ".join(text(table(cells_table([]))))
        lines = text(table(cells_table([failed(cell())])))
        assert body(lines)[0][:3] == ["none", "-", "failed"]
        assert table(cells_table([])).schema == table(cells_table([failed(cell())])).schema
