"""What becomes of the bytes of an answer, however they were cut."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from scripts.lib.client_answers import events

STREAM = 'data: {"a": "ü"}\r\n\r\n: ping\n\ndata:{"b": 1}\n\ndata: [DONE]\n\n'.encode()


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_events_do_not_depend_on_how_the_bytes_were_cut(cuts):
    edges = [0, *sorted(cuts), len(STREAM)]
    blocks = [(float(i), STREAM[a:b]) for i, (a, b) in enumerate(pairwise(edges))]
    found = events(blocks)
    assert [data for _, data in found] == ['{"a": "ü"}', '{"b": 1}', "[DONE]"]
    assert [arrived for arrived, _ in found] == sorted(arrived for arrived, _ in found)
