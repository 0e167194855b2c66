"""What a request takes in whole pages."""

from __future__ import annotations

import pytest

from scripts.lib.tables.cells import cells_table
from scripts.lib.tables.kv_requests import SCHEMA, kv_requests_table, kv_requests_text
from tests.evidence_factory import cell
from tests.lib.tables.reading import body
from tests.lib.tables.test_cells import RECORDS
from tests.record_factory import failed, measured


def server(method: str, k: int, page: int, length: int, **values: object) -> dict:
    """A cell of ten requests of `length` tokens in all, on a server with pages of `page` tokens."""
    counts = {"requests": 10, "prompt_tokens": 10 * (length - 50), "completion_tokens": 500}
    return measured(cell(method, k), 10.0, block_size_tokens=page, **counts, **values)


def rows(length: int, pages: tuple[int, int], **values: object) -> list[list[str]]:
    records = [server("none", 0, pages[0], length, **values), server("mtp", 3, pages[1], length, **values)]
    return body(kv_requests_text(kv_requests_table(cells_table(records))))


@pytest.mark.parametrize(
    ("length", "pages", "baseline", "drafted"),
    [
        (900, (784, 1600), ["2", "1,568", "1.00"], ["1", "1,600", "1.02"]),  # F28
        (700, (784, 1600), ["1", "784", "1.00"], ["1", "1,600", "2.04"]),
        (300, (16, 528), ["19", "304", "1.00"], ["1", "528", "1.74"]),
    ],
)
def test_f28_short_requests_waste_most_of_a_large_page(
    length: int, pages: tuple, baseline: list, drafted: list
) -> None:
    found = rows(length, pages, hybrid=True)
    assert [row[3:6] for row in found] == [baseline, drafted]
    assert [row[6] for row in found] == ["-", "-"], "no capacity by pages of a hybrid model (F02)"


def test_requests_that_fit_where_all_layers_share_their_pages() -> None:
    # 1000 pages; a request of 900 tokens takes 57 of 16.
    assert [row[6] for row in rows(900, (16, 16), kv_cache_tokens=16_000)] == ["17", "17"]


def test_a_method_is_not_judged_by_shorter_answers_of_its_own() -> None:
    records = [server("none", 0, 100, 950), server("mtp", 3, 100, 100)]
    table = kv_requests_table(cells_table(records))
    assert table["request_tokens"].to_list() == [950, 950]


def test_what_no_log_told_is_absent() -> None:
    records = [server("none", 0, 16, 900), failed(cell("mtp", 1))]
    assert [row[2:] for row in body(kv_requests_text(kv_requests_table(cells_table(records))))] == [
        ["16", "57", "912", "1.00", "-"],
        ["-"] * 5,
    ]


def test_no_page_size_at_all_is_said_once() -> None:
    lines = kv_requests_text(kv_requests_table(cells_table([measured(cell(), 10.0)])))
    assert lines[-1] == "No server's log states how many tokens a page holds."


@pytest.mark.parametrize("records", RECORDS.values(), ids=list(RECORDS))
def test_types_do_not_depend_on_the_outcome(records: list[dict]) -> None:
    table = kv_requests_table(cells_table(records))
    assert dict(table.schema) == SCHEMA
    kv_requests_text(table)
