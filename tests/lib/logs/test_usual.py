"""The quick way through usual lines: it takes them, and sees in them exactly what the general way sees."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scripts.lib.logs.normalise import normalise
from scripts.lib.logs.samples import Samples
from scripts.lib.logs.usual import UsualReader
from tests.lib.logs.test_periodic import (
    A_LINE,
    B_LINE,
    C_LINE,
    D_LINE,
    DECODE,
    E_LINE,
    RICH_STATS,
    STATS,
    V0_STATS,
)

PREFILL = [
    "Prefill batch, #new-seq: 1, #new-token: 25, #cached-token: 75, token usage: 0.01, #running-req: 2, #queue-req: 5, "
    "input throughput (token/s): 54.68",
    "Prefill batch. #new-seq: 1, #new-token: 0, #cached-token: 0, cache hit rate: 0.00%, token usage: 0.01, #running-req: 2, "
    "#queue-req: 0, ",
    "Prefill batch [12], #new-seq: 1, #new-token: 25, #cached-token: 0, full token usage: 0.01, swa token usage: 0.5, "
    "#running-req: 2, #queue-req: 0, #prealloc-req: 3, input throughput (token/s): 4.5, cuda graph: False",
]
MESSAGES = [
    STATS,
    STATS.partition(", Prefix")[0],
    V0_STATS,
    RICH_STATS.replace("1,310.2", "1310.2"),
    A_LINE,
    B_LINE,
    C_LINE,
    D_LINE.format("1.83"),
    D_LINE.format("2.83"),
    E_LINE,
    *DECODE,
    *PREFILL,
]
STAMP = "2026-11-29 18:22:15"
HEADS = {
    "bare": "INFO 11-29 18:22:15 [x.py:1] {}",
    "process": "(EngineCore_DP0 pid=33) INFO 11-29 18:22:15 [loggers.py:310] {}",
    "old": "INFO 08-12 06:11:52 metrics.py:455] {}",
    "year": f"INFO {STAMP} [x.py:1] {{}}",
    "sglang": f"[{STAMP}] {{}}",
    "ranks": f"[{STAMP}.123 DP1 TP0] {{}}",
    "docker": "2025-09-02T08:04:02.875067135Z (APIServer pid=1) INFO 11-29 18:22:15 [x.py:1] {}",
    "bracket": "[2025-09-02T08:04:02Z] INFO 11-29 18:22:15 [x.py:1] {}",
    "compose": f"svc-1  | [{STAMP} TP0] {{}}",
    "carriage": "INFO 11-29 18:22:15 [x.py:1] {}\r",
}


def formatter(message: str) -> str:
    names = {"levelname": "INFO", "name": "vllm.v1.metrics", "processName": "EngineCore", "process": 7}
    return json.dumps({"asctime": STAMP} | names | {"message": message})


def envelope(message: str) -> str:
    line = f"(APIServer pid=1) INFO 11-29 18:22:15 [x.py:1] {message}\n"
    return json.dumps({"log": line, "stream": "stdout", "time": "2025-03-04T05:06:07Z"})


def named(message: str) -> str:
    """Both a JSON record and a line with a head and no process."""
    return json.dumps({"msg": f"[{STAMP}] {message}", "level": "info", "ts": 12.5, "processName": "TP3"})


FORMS = {name: head.format for name, head in HEADS.items()}
FORMS |= {"formatter": formatter, "envelope": envelope, "named": named}


def samples(method: str = "eagle", version: str | None = None) -> Samples:
    made = Samples()
    made.configure(3, method == "eagle", version, 40)
    return made


def content(found: Samples) -> tuple:
    # repr, since absent values are NaN inside and NaN is no NaN's equal
    return repr(list(found.intervals)), repr(list(found.speculation)), found.engine


def generally(line: str, **configured: str) -> tuple[bool, tuple]:
    found = samples(**configured)
    taken = [
        found.read(logical)
        for logical in normalise(line.rstrip("\r"), 70, 8)
        if logical.message and logical.head is not None
    ]
    return any(taken), content(found)


def quickly(line: str, **configured: str) -> tuple[int, tuple]:
    found = samples(**configured)
    text = f"before\n{line}\nafter".encode()
    return UsualReader(found).read(text, 7, 70, 8), content(found)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("message", MESSAGES, ids=lambda text: text[:20] + str(len(text)))
def test_usual_lines_are_taken_and_read_alike(message: str, form: str) -> None:
    line = FORMS[form](message)
    for configured in ({}, {"method": "ngram"}, {"version": "0.8.5"}, {"version": "0.9.1"}):
        end, quick = quickly(line, **configured)
        taken, general = generally(line, **configured)
        assert taken
        assert end == 7 + len(line)
        assert quick == general


@pytest.mark.parametrize("message", MESSAGES, ids=lambda text: text[:20] + str(len(text)))
def test_a_line_that_is_cut_or_goes_on_is_left_to_the_general_way_or_read_alike(message: str) -> None:
    for form in ("process", "ranks", "formatter"):
        for changed in (
            message[:-3],
            message + " and more",
            message + ", accept len: 9.00",
            message.replace(", ", ",, "),
        ):
            line = FORMS[form](changed)
            end, quick = quickly(line)
            assert end == -1 or quick == generally(line)[1], line


NUMBERS = re.compile(r"\d+(?:\.\d+)?")
odd = st.one_of(
    st.integers(0, 10**12).map(str),
    st.floats(0, 1e6).map(lambda value: f"{value:.3f}"),
    st.sampled_from(["nan", "1,234", "-1", "", "0", "1e5", "007", "1.", "9" * 20]),
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(MESSAGES), st.sampled_from(sorted(FORMS)), st.lists(odd, min_size=1, max_size=12))
def test_whatever_is_printed_the_quick_way_never_differs(message: str, form: str, values: list[str]) -> None:
    given_values = iter(values * 20)
    line = FORMS[form](NUMBERS.sub(lambda _: next(given_values), message))
    end, quick = quickly(line)
    if end >= 0:
        assert quick == generally(line)[1]
    else:
        assert quick == content(samples())


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(MESSAGES), st.sampled_from(sorted(FORMS)), st.data())
def test_swapped_and_repeated_parts_never_make_a_difference(
    message: str, form: str, data: st.DataObject
) -> None:
    parts = message.split(", ")
    order = data.draw(st.lists(st.sampled_from(range(len(parts))), min_size=1, max_size=len(parts) + 2))
    line = FORMS[form](", ".join(parts[index] for index in order))
    end, quick = quickly(line)
    assert end == -1 or quick == generally(line)[1]


def test_other_lines_are_not_taken() -> None:
    for line in (
        "",
        "{",
        "{}",
        "[]",
        "[20",
        "(",
        "INFO",
        '{"message": 1}',
        '{"log": "a\\nb"}',
        "{" * 5000,
        '["message"]',
    ):
        assert quickly(line)[0] == -1
    assert quickly(formatter(STATS + "\n" + STATS))[0] == -1
    assert quickly(json.dumps({"message": STATS, "exc_info": "Traceback"}))[0] == -1
    assert quickly(json.dumps({"message": "\ud800" + STATS}))[0] == -1
