"""Every cell without a result is listed with its cause and its log."""

from __future__ import annotations

from scripts.lib.tables.cells import cells_table
from scripts.lib.tables.failures import closing_words, counts_line, failures_text
from tests.evidence_factory import cell
from tests.record_factory import damaged, failed, infeasible, measured, mislabelled


def test_no_failures() -> None:
    assert failures_text(cells_table([measured(cell(), 1.0)])) == ["No failures: all 1 cells have a result."]
    assert failures_text(cells_table([])) == ["There are no cells."]


def test_cells_of_one_cause_share_a_section() -> None:
    records = [failed(cell("mtp", k, c)) for k in (1, 3) for c in (1, 4)]
    lines = failures_text(cells_table([*records, measured(cell(), 1.0)]))
    assert lines[0] == "4 of 5 cells have no usable result: 4 failed."
    assert [line for line in lines if line.startswith("## ")] == ["## 1. resource_start (4 cells failed)"]
    text = "\n".join(lines)
    for expected in (
        "- cause: no memory is left for the KV cache",
        "- phase: startup (process EngineCore)",
        "- fix: raise gpu_memory_utilization or use a smaller drafter",
        "      ValueError: No available memory for the cache blocks.",
    ):
        assert expected in text
    for record_cell in (cell("mtp", k, c) for k in (1, 3) for c in (1, 4)):
        assert f"- {record_cell.path}" in lines
        assert f"  log: resources/store/{record_cell.path}/0123456789abcdef/server.log.gz" in lines


def test_infeasible_and_damaged_cells_show_their_reasons() -> None:
    lines = failures_text(cells_table([infeasible(cell("mtp", 3)), damaged(cell("ngram", 1))]))
    assert lines[0] == "2 of 2 cells have no usable result: 1 damaged, 1 infeasible."
    assert "- k 3 must be a multiple of the 2 heads of this model's mtp module" in lines
    assert "- requests.jsonl does not match its checksum. Run again" in lines


def test_incomplete_cells_are_listed_apart() -> None:
    reasons = ["7 of 8 requests completed", "the first of 1 errors: timeout"]
    lines = failures_text(cells_table([measured(cell(), 1.0, completed=7, failed=1, reasons=reasons)]))
    assert lines[0].startswith("No failures")
    assert "  7 of 8 requests completed" in lines
    assert "  the first of 1 errors: timeout" in lines


def test_remarks_are_listed_once_each() -> None:
    noted = [
        measured(cell(concurrency=c), 1.0, notes=["hybrid cache", *(["cold"] if c == 4 else [])])
        for c in (1, 4)
    ]
    lines = failures_text(cells_table(noted))
    assert lines[lines.index("## Remarks") + 2 :] == [
        "- hybrid cache",
        f"  (2 cells, the first is {cell().path})",
        "- cold",
        f"  (1 cell, the first is {cell(concurrency=4).path})",
    ]


def test_one_cell_is_singular() -> None:
    assert counts_line(cells_table([failed(cell())])) == "1 of 1 cell has no usable result: 1 failed."


def test_mislabelled_cells_have_a_section_with_asked_resolved_and_the_line() -> None:
    records = [mislabelled(cell("mtp", 3, c), 10.0) for c in (1, 4)]
    lines = failures_text(cells_table([*records, measured(cell(), 1.0)]))
    assert lines[0] == "2 of 3 cells have no usable result: 2 mislabelled."
    start = lines.index("## 1. mislabelled (2 cells measured, but not what the row says)")
    assert lines[start + 2 :] == [
        "- k: asked 3, the server resolved 1 (server log line 7: num_spec_tokens=1)",
        "- fix: correct the server",
        "",
        "Cells:",
        "",
        f"- {cell('mtp', 3, 1).path}",
        f"  log: store/{cell('mtp', 3, 1).path}/0123456789abcdef/server.log.gz",
        f"- {cell('mtp', 3, 4).path}",
        f"  log: store/{cell('mtp', 3, 4).path}/0123456789abcdef/server.log.gz",
    ]


def test_what_a_run_ends_with() -> None:
    good, wrong = measured(cell(), 1.0), [mislabelled(cell("mtp", 3, c), 1.0) for c in (1, 4)]
    bad = [failed(cell("eagle", 3)), damaged(cell("ngram", 3))]
    assert closing_words(cells_table([good, infeasible(cell("mtp", 4))])) is None
    assert closing_words(cells_table([good, *bad])) == "2 of 3 cells failed"
    assert closing_words(cells_table([good, *wrong])) == "2 of 3 cells are mislabelled"
    assert closing_words(cells_table([good, wrong[0]])) == "1 of 2 cells is mislabelled"
    assert closing_words(cells_table([good, *bad, *wrong])) == "2 of 5 cells failed, 2 are mislabelled"
