"""When all workers were busy, against values computed by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.lib.full_load import FullLoad

Spans = list[tuple[float, float]]


@pytest.mark.parametrize(
    ("spans", "concurrency", "share"),
    [
        ([(0, 1), (1, 2), (2, 4)], 1, 1.0),
        ([(0, 1), (0, 1), (1, 2), (1, 2)], 2, 1.0),
        ([(0, 1), (0.25, 1)], 2, 0.75),
        ([(0, 1), (0, 2), (1, 3)], 2, 2 / 3),
        ([(0, 1), (0, 1)], 4, 0.0),
        ([(0, 1), (2, 4)], 1, 0.75),
    ],
    ids=["one worker", "in lockstep", "a late start", "the last runs alone", "too few requests", "a pause"],
)
def test_share(spans: Spans, concurrency: int, share: float) -> None:
    assert FullLoad(spans, concurrency).share == pytest.approx(share)
    assert FullLoad(spans[::-1], concurrency).share == pytest.approx(share)


def test_the_end_of_the_loop_does_not_lower_the_throughput_at_full_load() -> None:
    # Two workers of 10 tokens/s each; the third request, twice as long, runs alone for its second half.
    spans = [(0.0, 1.0), (0.0, 2.0), (1.0, 3.0)]
    outputs = [(start + 0.1, end, 1 + round(10 * (end - start - 0.1))) for start, end in spans]
    total = sum(tokens for *_, tokens in outputs) / 3
    found = FullLoad(spans, 2).tps(outputs)
    # Three first tokens and 0.9 + 1.9 + 0.9 s at 10 tokens/s within the two seconds in which both were busy.
    assert found == pytest.approx((3 + 37) / 2)
    assert total == pytest.approx(50 / 3)


def test_at_one_worker_it_is_tokens_by_the_time_they_took() -> None:
    outputs = [(0.1, 1.0, 10), (2.1, 3.0, 10)]
    assert FullLoad([(0.0, 1.0), (2.0, 3.0)], 1).tps(outputs) == pytest.approx(20 / 2)


def test_an_answer_that_came_at_once_counts_where_it_came() -> None:
    load = FullLoad([(0.0, 1.0), (0.5, 2.0)], 2)
    assert load.tps([(0.75, 0.75, 5)]) == pytest.approx(5 / 0.5)
    assert load.tps([(0.25, 0.25, 5)]) == 0


def test_what_never_was_has_no_throughput() -> None:
    assert FullLoad([(0.0, 1.0)], 2).tps([(0.1, 1.0, 10)]) is None
    assert FullLoad([(1.0, 1.0)], 1).share is None
    with pytest.raises(ValueError, match="no request"):
        FullLoad([], 1)


LENGTHS = st.lists(st.tuples(st.floats(0, 1e3), st.floats(0.1, 1e3)), min_size=1)


@given(LENGTHS, st.integers(1, 8))
def test_share_is_a_share(lengths: Spans, concurrency: int) -> None:
    share = FullLoad([(start, start + length) for start, length in lengths], concurrency).share
    assert 0 <= share <= 1 + 1e-9


@given(LENGTHS)
def test_all_tokens_come_while_at_least_one_request_runs(lengths: Spans) -> None:
    spans = [(start, start + length) for start, length in lengths]
    load = FullLoad(spans, 1)
    outputs = [(start + length / 2, start + length, 11) for start, length in lengths]
    assert load.tps(outputs) * load.share * load.wall_s == pytest.approx(11 * len(spans))
