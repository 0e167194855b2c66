"""The layers around a message come off, whatever wrapped it."""

from __future__ import annotations

import json

import pytest

from scripts.lib.logs.normalise import MAX_LINE_BYTES, iter_lines, normalise, without_colours
from tests.lib.logs.helpers import parse

RECORD = "INFO 11-29 18:22:15 [kv_cache_utils.py:2235] GPU KV cache size: 64,512 tokens"

LAYERS = {
    "docker": "2025-03-04T05:06:07.123456789Z ",
    "docker with offset": "2025-03-04T05:06:07.123456789-07:00 ",
    "continuous integration": "[2026-01-02T03:04:05Z] ",
    "journald": "Jan  2 03:04:05 hostx vllm[4242]: ",
    "journald, precise": "Jan 02 03:04:05.123456 hostx vllm[4242]: ",
    "journald, iso": "2025-03-04T05:06:07+0000 hostx vllm[4242]: ",
    "compose": "server-1  | ",
    "compose, named container": "vllm | ",
    "compose, old": "server_1  | ",
    "container runtime": "2025-03-04T05:06:07.123456789Z stdout F ",
    "kubectl --prefix": "[pod/vllm-0/server] ",
    "srun --label": "0: ",
    "torchrun": "[rank3]: ",
    "docker in journald": "Jan  2 03:04:05 hostx dockerd[1]: 2025-03-04T05:06:07.123Z ",
}


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS.keys())
@pytest.mark.parametrize(
    "process", ["", "(EngineCore pid=33) ", "(MapWorker(..) pid=1) (EngineCore pid=33) "]
)
def test_outer_layers(layer: str, process: str) -> None:
    (line,) = normalise(layer + process + RECORD, 7, 3)
    assert line.message == "GPU KV cache size: 64,512 tokens"
    assert (line.level, line.timestamp, line.source) == ("INFO", "11-29 18:22:15", "kv_cache_utils.py:2235")
    assert (line.process, line.pid) == (("EngineCore", 33) if process else (None, None))
    assert (line.offset, line.number) == (7, 3)


PREFIXES = [
    ("(RayWorkerWrapper pid=77, ip=10.0.0.9) ", "RayWorkerWrapper", 77),
    ("(RayWorkerWrapper pid=77, ip=fd00::9) ", "RayWorkerWrapper", 77),
    ("(VllmWorkerProcess pid=91) ", "VllmWorkerProcess", 91),
    ("(VllmWorker rank=1 pid=91) ", "VllmWorker rank=1", 91),
    ("(VllmWorker TP1 pid=91) ", "VllmWorker TP1", 91),
    ("(APIServer pid=1) ", "APIServer", 1),
    ("(ApiServer_1 pid=9) ", "ApiServer_1", 9),
    ("(EngineCore_0 pid=33) ", "EngineCore_0", 33),
    ("(EngineCore_DP0 pid=33) ", "EngineCore_DP0", 33),
    ("(Worker_DP1_PP0_TP3_EP3 pid=55) ", "Worker_DP1_PP0_TP3_EP3", 55),
    ("(Worker pid=55) ", "Worker", 55),
    ("(MapWorker(..) pid=1) (EngineCore_DP0 pid=2) ", "EngineCore_DP0", 2),
    ("(APIServer pid=1) (EngineCore pid=2) ", "EngineCore", 2),
    ("\x1b[1;36m(EngineCore_0 pid=272)\x1b[0;0m ", "EngineCore_0", 272),
    ("\x1b[0;36m(EngineCore pid=272)\x1b[0;0m ", "EngineCore", 272),
]


@pytest.mark.parametrize(("prefix", "process", "pid"), PREFIXES, ids=[p[1] for p in PREFIXES])
def test_process_prefixes(prefix: str, process: str, pid: int) -> None:
    (line,) = normalise(prefix + RECORD, 0, 1)
    assert (line.process, line.pid, line.message[:3]) == (process, pid, "GPU")


HEADS = [
    ("INFO 08-12 06:11:52 gpu_executor.py:76] msg", "vllm-old", "INFO", "gpu_executor.py:76"),
    ("INFO 11-29 18:22:15 [kv_cache_utils.py:2235] msg", "vllm", "INFO", "kv_cache_utils.py:2235"),
    (
        "DEBUG 11-29 18:22:15 [v1/core/.../kv_cache_utils.py:9] msg",
        "vllm",
        "DEBUG",
        "v1/core/.../kv_cache_utils.py:9",
    ),
    ("DEBUG 11-29 18:22:15 [v1/core/\u2026/x.py:9] msg", "vllm", "DEBUG", "v1/core/\u2026/x.py:9"),
    ("[2025-03-04 05:06:07 DP1 TP0] msg", "sglang", None, None),
    ("[2025-03-04 05:06:07.123] msg", "sglang", None, None),
    ("[2025-03-04 05:06:07] INFO:     msg", "sglang", "INFO", None),
    ("INFO:     msg", "uvicorn", "INFO", None),
    ("ERROR:    msg", "uvicorn", "ERROR", None),
    ("[W1129 19:12:51.666478225 socket.cpp:207] msg", "glog", "WARNING", "socket.cpp:207"),
    ("2026-11-29 19:14:57,194 - INFO - msg", "logging", "INFO", None),
    ("msg", None, None, None),
]


@pytest.mark.parametrize(("text", "head", "level", "source"), HEADS, ids=[h[0][:40] for h in HEADS])
def test_heads(text: str, head: str | None, level: str | None, source: str | None) -> None:
    (line,) = normalise(text, 0, 1)
    assert (line.message, line.head, line.level, line.source) == ("msg", head, level, source)


def test_sglang_ranks_are_the_process() -> None:
    (line,) = normalise("[2025-03-04 05:06:07 DP1 TP0] msg", 0, 1)
    assert line.process == "DP1 TP0"


def test_logging_prefix_before_the_level() -> None:
    line = normalise("[my cluster] (EngineCore pid=2) " + RECORD, 0, 1)[-1]
    assert (line.message[:3], line.process) == ("GPU", "EngineCore")


def test_ray_repeats() -> None:
    (line,) = normalise(
        "(RayWorkerWrapper pid=7) INFO 11-29 18:22:15 [x.py:1] took 5 s [repeated 7x across cluster]", 0, 1
    )
    assert (line.message, line.repeated) == ("took 5 s", 7)
    note = " [repeated 3x across cluster] (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0 to disable)"
    (line,) = normalise("(RayWorkerWrapper pid=7) INFO 11-29 18:22:15 [x.py:1] took 5 s" + note, 0, 1)
    assert (line.message, line.repeated) == ("took 5 s", 3)


def test_json_formatter() -> None:
    record = {
        "asctime": "2026",
        "levelname": "INFO",
        "name": "vllm.x",
        "processName": "EngineCore",
        "message": "a\nb",
    }
    lines = normalise(json.dumps(record), 5, 9)
    assert [line.message for line in lines] == ["a", "b"]
    assert all(
        (line.process, line.level, line.head, line.offset) == ("EngineCore", "INFO", "json", 5)
        for line in lines
    )


def test_collectors_envelope() -> None:
    inner = "(EngineCore pid=33) " + RECORD + "\n"
    (line,) = normalise(json.dumps({"log": inner, "stream": "stdout", "time": "2025-03-04T05:06:07Z"}), 0, 1)
    assert (line.process, line.message[:3], line.timestamp) == ("EngineCore", "GPU", "11-29 18:22:15")


def test_record_glued_behind_a_progress_bar() -> None:
    text = "Capturing CUDA graphs (FULL):   0%|          | 0/49 [00:00<?, ?it/s](EngineCore pid=2) " + RECORD
    bar, record = normalise(text, 0, 1)
    assert bar.message.startswith("Capturing CUDA graphs")
    assert (record.process, record.message[:3]) == ("EngineCore", "GPU")


def test_record_glued_behind_a_record() -> None:
    first, second = normalise(
        "(Worker pid=1) INFO 11-29 18:22:14 [a.py:1] one(EngineCore pid=2) " + RECORD, 0, 1
    )
    assert (first.process, first.message) == ("Worker", "one")
    assert (second.process, second.message[:3]) == ("EngineCore", "GPU")


def test_sglang_record_glued_behind_a_progress_bar() -> None:
    bar, record = normalise(
        "  0%|          | 0/58 [00:00<?, ?it/s][2026-11-29 20:23:20] Memory pool end.", 0, 1
    )
    assert bar.message.strip().startswith("0%")
    assert record.message == "Memory pool end."


def test_indentation_of_traceback_frames_survives_every_layer() -> None:
    for layer in (*LAYERS.values(), "(EngineCore pid=2) ", "ERROR 11-29 18:22:15 [core.py:1349] "):
        if layer != "0: ":
            (line,) = normalise(layer + '  File "x.py", line 3, in f', 0, 1)
            assert line.message == '  File "x.py", line 3, in f', layer


def test_offsets_and_numbers_follow_the_bytes() -> None:
    data = "α\r\nbb\rcc\n\nd".encode()
    lines = [(line.offset, line.number, line.message) for line in iter_lines([data]) if line.message]
    assert lines == [(0, 1, "α"), (4, 2, "bb"), (7, 2, "cc"), (11, 4, "d")]


def test_over_long_line_is_cut() -> None:
    (line,) = iter_lines([b"x" * (MAX_LINE_BYTES + 5)])
    assert len(line.message) == MAX_LINE_BYTES


def test_undecodable_bytes_are_replaced() -> None:
    (line,) = iter_lines([b"\xff\xfe abc"])
    assert line.message.endswith("abc")


@pytest.mark.parametrize("escape", ["\x1b", "ESC", "\\x1b", "\\u001b", "\\033", "#033", "^["])
def test_colour_codes_however_they_are_spelled(escape: str) -> None:
    text = (
        f"{escape}[1;36m(EngineCore_0 pid=272){escape}[0;0m {escape}[32mINFO{escape}[0m 09-02 08:04:02 "
        "[x.py:1] hello"
    )
    (line,) = normalise(text, 0, 1)
    assert (line.process, line.level, line.message) == ("EngineCore_0", "INFO", "hello")
    assert without_colours(text.encode()) == b"(EngineCore_0 pid=272) INFO 09-02 08:04:02 [x.py:1] hello"


def test_plain_data_has_no_colours_to_remove() -> None:
    assert without_colours(b"[1b[ no escape\n") is None


def test_quoted_log_text_in_a_prompt_is_not_read() -> None:
    report = parse(
        "(APIServer pid=1) INFO 11-29 18:22:15 [logger.py:39] Received request c-1: prompt: 'why does it "
        "say GPU KV cache size: "
        "5 tokens (EngineCore pid=2) INFO 11-29 18:22:15 [x.py:1] GPU KV cache size: 6 tokens', params: "
        "SamplingParams(n=1)\n"
    )
    assert report.get("kv_cache_tokens") is None
