"""Properties that hold for any log: nothing raises, layers and cuts change nothing, numbers survive
separators."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scripts.lib.logs import LogReport, parse_chunks
from scripts.lib.logs import scan as scan_module
from scripts.lib.logs.as_json import json_parts
from scripts.lib.logs.collect import PREFILTER
from scripts.lib.logs.normalise import iter_lines
from scripts.lib.logs.prometheus import difference, parse_metrics
from scripts.lib.logs.render import render_report
from scripts.lib.logs.render_table import render_table
from tests.lib.logs import golden
from tests.lib.logs.helpers import parse, vllm
from tests.lib.logs.test_dialects import NOTICES, SGLANG_NOTICES, SINGLE
from tests.lib.logs.test_normalise import LAYERS
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
from tests.lib.logs.test_root_cause import THREE_PROCESSES

FAST = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SAMPLES = [
    golden.DATA / name
    for name in (
        "failure_port_in_use.log",
        "failure_draft_path_missing.log",
        "h200_ngram_k3.log",
        "h200_dflash_k3.log.gz",
        "h200_sgl_standalone.log.gz",
        "vllm0271cpu_suffix_k8.log.gz",
        "failure_eagle_unexpected_weight.log.gz",
    )
]
PIECES = [text.strip() for text, _ in SINGLE] + [
    vllm(text).strip() for text, _, _ in NOTICES + SGLANG_NOTICES
]
PIECES += [
    vllm(text).strip()
    for text in (A_LINE, B_LINE, C_LINE, D_LINE.format("1.83"), E_LINE, STATS, V0_STATS, RICH_STATS)
]
PIECES += [f"[2025-03-04 05:06:07] {text}" for text in DECODE] + THREE_PROCESSES.splitlines()


def _bytes(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def everything(report: LogReport) -> str:
    """All a report says, for comparison."""
    return "".join(json_parts("x", report))


def without_places(report: LogReport) -> dict:
    """What a report says apart from where it stands."""
    facts = {name: (fact.value, fact.process, fact.note) for name, fact in report.facts.items()}
    failure = report.failure
    return {
        "engine": (report.engine, report.version, report.phase, report.ready),
        "facts": facts,
        "intervals": [s[2:] for s in report.intervals],
        "speculation": [s[2:] for s in report.speculation],
        "warnings": [(notice.id, dict(notice.values)) for notice in report.warnings],
        "failure": failure
        and (
            failure.catalogue_id,
            failure.failure_class,
            failure.root_line,
            failure.line_number,
            failure.process,
        ),
    }


@FAST
@given(st.binary(max_size=4000))
def test_any_bytes_never_raise(data: bytes) -> None:
    report = parse_chunks([data])
    assert report.size_bytes == len(data)
    render_report("x", report)
    json.loads(everything(report))


@FAST
@given(st.data())
def test_shuffled_and_cut_real_lines_never_raise(data: st.DataObject) -> None:
    lines = data.draw(st.lists(st.sampled_from(PIECES), max_size=25))
    broken = [
        line[: data.draw(st.integers(0, len(line)))] if data.draw(st.booleans()) else line for line in lines
    ]
    separator = data.draw(st.sampled_from(["\n", "\r\n", "\r", ""]))
    report = parse(separator.join(broken))
    json.loads(everything(report))
    render_table([("a", report), ("b", report)])


@FAST
@given(st.sampled_from(PIECES), st.data())
def test_garbled_lines_never_raise(line: str, data: st.DataObject) -> None:
    garbled = list(line)
    for _ in range(data.draw(st.integers(1, 12))):
        position = data.draw(st.integers(0, len(garbled) - 1))
        garbled[position] = data.draw(
            st.sampled_from(list("0123456789.,:-=()[]{}<>'\"\\%x \n\r\x1b\x00é∞")) | st.just("9" * 400)
        )
    json.loads(everything(parse("".join(garbled))))


@FAST
@given(st.sampled_from(SAMPLES), st.data())
def test_cutting_anywhere_changes_nothing(path: Path, data: st.DataObject) -> None:
    content = _bytes(path)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=8)))
    parts = [content[a:b] for a, b in zip([0, *cuts], [*cuts, len(content)], strict=True)]
    assert everything(parse_chunks(parts)) == everything(parse_chunks([content]))


@pytest.mark.parametrize("path", SAMPLES[:3], ids=lambda path: path.name)
def test_one_byte_at_a_time(path: Path) -> None:
    content = _bytes(path)[:9000]
    single = [content[i : i + 1] for i in range(len(content))]
    assert everything(parse_chunks(single)) == everything(parse_chunks([content]))
    assert list(iter_lines(single)) == list(iter_lines([content]))


@pytest.mark.parametrize("limit", [0, 1, 5000, 20000])
def test_the_two_prefilters_find_the_same_in_real_logs(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_module, "START_BYTES", limit)
    for path in SAMPLES:
        content = _bytes(path)
        quick = everything(parse_chunks([content]))
        monkeypatch.setattr(scan_module, "START_BYTES", 1 << 30)
        assert everything(parse_chunks([content])) == quick, path.name
        monkeypatch.setattr(scan_module, "START_BYTES", limit)


@pytest.mark.parametrize("line", PIECES, ids=range(len(PIECES)))
def test_prefilter_lets_every_readable_line_pass(line: str) -> None:
    text = b"\n" + line.encode()
    if everything(parse(line)) != everything(parse("x" * len(line))) and "Error" not in line:
        assert PREFILTER.hits(text, everywhere=True)
        assert PREFILTER.hits(text, everywhere=False)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_colour_codes_change_nothing(path: Path) -> None:
    content = _bytes(path)
    rng = random.Random(1)
    coloured = b"".join(
        rng.choice((b"", b"\x1b[1;36m", b"\x1b[0m"))
        + line[:-1]
        + rng.choice((b"\x1b[0;0m", b"\x1b[K", b""))
        + line[-1:]
        for line in content.splitlines(keepends=True)
    )
    assert without_places(parse_chunks([coloured])) == without_places(parse_chunks([content]))


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS.keys())
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_outer_layers_change_nothing(path: Path, layer: str) -> None:
    content = _bytes(path)
    if layer == "0: ":  # only recognised before a head, so that prose with a colon stays whole
        wrapped = b"\n".join(
            layer.encode() + line if line[:1] in (b"(", b"[") else line for line in content.split(b"\n")
        )
    else:
        wrapped = b"\n".join(layer.encode() + line for line in content.split(b"\n"))
    assert without_places(parse_chunks([wrapped])) == without_places(parse_chunks([content]))


@pytest.mark.parametrize("path", SAMPLES[:4], ids=lambda path: path.name)
def test_outer_process_prefix_changes_nothing(path: Path) -> None:
    """Under Ray each line carries the actor's prefix outside its own."""
    content = _bytes(path)
    wrapped = b"\n".join(
        b"(MapWorker(..) pid=1) " + line if line.startswith(b"(") else line for line in content.split(b"\n")
    )
    assert without_places(parse_chunks([wrapped])) == without_places(parse_chunks([content]))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_progress_bars_change_nothing(path: Path) -> None:
    content = _bytes(path).replace(b"\r\n", b"\n")
    bar = b"Loading safetensors checkpoint shards:  25% Completed | 2/8 [00:06<00:20, 3.43s/it]\r"
    clean = parse_chunks([content])
    barred = parse_chunks([b"\n".join(bar * 2 + line for line in content.split(b"\n"))])
    assert without_places(barred)["facts"] == without_places(clean)["facts"]
    assert without_places(barred)["failure"] == without_places(clean)["failure"]
    assert without_places(barred)["speculation"] == without_places(clean)["speculation"]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_crlf_changes_nothing(path: Path) -> None:
    content = _bytes(path).replace(b"\r\n", b"\n")
    assert without_places(parse_chunks([content.replace(b"\n", b"\r\n")])) == without_places(
        parse_chunks([content])
    )


@FAST
@given(st.integers(0, 10**12), st.integers(1, 10**7), st.integers(0, 10**6))
def test_numbers_survive_thousands_separators(tokens: int, length: int, hundredths: int) -> None:
    requests = hundredths / 100
    forms = [
        f"GPU KV cache size: {tokens:{sep}} tokens, Maximum concurrency for {length:{sep}} tokens per "
        f"request: {requests:{sep}.2f}x"
        for sep in ("", ",")
    ]
    plain, separated = (parse(vllm(form)) for form in forms)
    for name in ("kv_cache_tokens", "max_concurrency_length_tokens", "max_concurrency"):
        assert plain.get(name) == separated.get(name)
    assert plain.get("kv_cache_tokens") == tokens
    assert plain.get("max_concurrency") == pytest.approx(requests)


@FAST
@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_token_counts_survive_thousands_separators(accepted: int, drafted: int) -> None:
    line = E_LINE.replace("Accepted: 610", "Accepted: {}").replace("Drafted: 1000", "Drafted: {}")
    plain = parse(vllm(line.format(accepted, drafted))).speculation[0]
    separated = parse(vllm(line.format(f"{accepted:,}", f"{drafted:,}"))).speculation[0]
    assert (plain.accepted, plain.drafted) == (separated.accepted, separated.drafted) == (accepted, drafted)


@FAST
@given(st.text(max_size=300), st.text(max_size=300))
def test_any_metrics_text_never_raises(before: str, after: str) -> None:
    parse_metrics(before)
    difference(before, after)


def test_endless_line_is_bounded_and_cut_independent() -> None:
    content = (
        b"(EngineCore pid=3) " + b"y" * 3_000_000 + b"\n" + vllm("GPU KV cache size: 64 tokens").encode()
    )
    for size in (1 << 16, 1 << 20, len(content)):
        report = parse_chunks([content[i : i + size] for i in range(0, len(content), size)])
        assert report.get("kv_cache_tokens") == 64
        assert report.facts["kv_cache_tokens"].line == 2
        assert report.facts["kv_cache_tokens"].observations[0].offset == content.index(b"\n") + 1
