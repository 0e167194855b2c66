"""Tables that fit a terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scripts.lib.tables import markdown

TEXT = st.text("abc 0.|", max_size=12)


def test_columns_line_up() -> None:
    assert markdown.table(["method", "k"], [["none", "-"], ["mtp", "13"]], fixed=1) == [
        "| method |  k |",
        "|--------|---:|",
        "| none   |  - |",
        "| mtp    | 13 |",
    ]


def test_wide_tables_are_cut_and_repeat_their_fixed_columns() -> None:
    headers = ["method", *(f"concurrency {n} (tok/s)" for n in range(8))]
    lines = markdown.table(headers, [["mtp", *("1.0" for _ in range(8))]], fixed=1)
    assert max(map(len, lines)) <= markdown.WIDTH
    assert sum(line.startswith("| method") for line in lines) == 3
    assert all(f"concurrency {n} " in "".join(lines) for n in range(8))


def test_bars_in_texts_do_not_end_a_column() -> None:
    assert markdown.table(["a"], [["x|y"]], fixed=1)[2] == "| x\\|y |"


def test_no_rows() -> None:
    assert markdown.table(["a", "b"], [], fixed=1) == ["| a | b |", "|---|--:|"]


@given(
    st.integers(1, 12).flatmap(
        lambda n: st.lists(st.lists(TEXT, min_size=n, max_size=n), min_size=1, max_size=5)
    )
)
def test_every_line_of_a_block_is_equally_long(rows: list[list[str]]) -> None:
    lines = markdown.table(rows[0], rows[1:], fixed=1)
    blocks = "\n".join(lines).split("\n\n")
    assert all(len({len(line) for line in block.split("\n")}) == 1 for block in blocks)


def test_paragraphs_wrap_at_the_width() -> None:
    assert max(map(len, markdown.paragraph("word " * 100))) <= markdown.WIDTH


def test_heading_names_what_a_number_alone_would_not_say() -> None:
    block = {"hardware": "cpu", "max_model_len": 1024, "scenario": "code"}
    assert markdown.heading(block) == "## cpu, max_model_len 1024, scenario code"
