"""The command line: what it prints for good and for bad input."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import parse_log
from tests.lib.logs.golden import DATA

ROOT = Path(__file__).parents[3]
BASE, DFLASH = DATA / "h200_base.log.gz", DATA / "h200_dflash_k3.log.gz"


def run(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess:
    """The command as a user starts it."""
    return subprocess.run(
        [sys.executable, "-m", "scripts.parse_log", *arguments],
        cwd=ROOT,
        input=stdin,
        capture_output=True,
        check=False,
        timeout=120,
    )


def show(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """The same in this process."""
    status = parse_log.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_one_log(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = show(capsys, DFLASH)
    assert (status, err) == (0, "")
    for words in (
        "vllm 0.26.0 (V1), failed",
        "LIKELY ROOT CAUSE (line 187, EngineCore, at run time)",
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
        "class   resource_runtime, known as illegal_memory_access",
        "advice  ",
        "kv_cache_tokens                1,358,649 tokens",
        "kv_available_gib               56.39 GiB",
        "init_s                         168.27 s",
        "length 2.90, rate 63.3%, by position 1.000 0.898 0.000",
        "jit_during_inference (7 times)",
        "not found",
    ):
        assert words in out


def test_lines_stay_within_the_width(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        (
            BASE,
            DFLASH,
            DATA / "h200_sgl_ngram.log.gz",
            DATA / "failure_port_in_use.log",
            DATA / "vllm0271cpu_suffix_k8.log.gz",
            DATA / "failure_eagle_unexpected_weight.log.gz",
        ),
        (BASE,),
    ):
        _, out, _ = show(capsys, *arguments)
        assert max(len(line) for line in out.splitlines() if "/" not in line and "Error: " not in line) <= 100


def test_several_logs_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = show(capsys, BASE, DATA / "h200_dspark_k3.log.gz")
    assert status == 0
    rows = {line[1:].split("  ")[0].strip(): line for line in out.splitlines() if line[:1] in "* "}
    assert rows["kv_cache_tokens"].split()[-2:] == ["8,894,691", "1,396,797"]
    assert rows["kv_cache_tokens"].startswith("*")
    assert rows["moe_backend"].startswith(" ")
    assert rows["speculative_method"].split()[-2:] == ["none", "dspark"]
    assert "h200_base.log.gz" in out


def test_load_and_acceptance_in_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = show(
        capsys, DATA / "vllm0271cpu_draftmodel_l28_k3.log.gz", DATA / "vllm0271cpu_baseline3.log.gz"
    )
    rows = {line[1:24].strip(): line.split()[-2:] for line in out.splitlines() if line[:1] in "* "}
    assert rows["running, most"] == ["4", "1"]
    assert rows["acceptance_length"] == ["2.36", "-"]
    assert rows["acceptance_rate"] == ["0.452", "-"]


def test_many_logs_come_in_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    logs = sorted(DATA.glob("vllm0271cpu_sweep*.log.gz"))
    _, out, _ = show(capsys, *logs)
    assert out.count("speculative_method") == -(-len(logs) // 4)
    assert max(map(len, out.splitlines())) <= 100


def test_failures_are_explained_below_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = show(capsys, BASE, DATA / "failure_port_in_use.log")
    assert "port_in_use" in out
    assert "find the owner of the port" in out


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = show(capsys, "--json", DFLASH)
    report = json.loads(out)
    assert report["engine"] == "vllm"
    assert report["facts"]["kv_cache_tokens"]["value"] == 1358649
    assert report["facts"]["kv_cache_tokens"]["unit"] == "tokens"
    assert report["failure"]["catalogue_id"] == "illegal_memory_access"
    assert report["speculation"][0]["accepted"] == 672
    assert report["intervals"][0]["generation_tps"] == 85.7
    assert report["missing"]["weights_load_s"]
    _, out, _ = show(capsys, "--json", BASE, DFLASH)
    assert [item["failure"] is None for item in json.loads(out)] == [True, False]


def test_gzip_plain_and_stdin_agree(tmp_path: Path) -> None:
    plain = tmp_path / "a.log"
    plain.write_bytes(gzip.decompress(BASE.read_bytes()))
    packed = json.loads(run("--json", str(BASE)).stdout)
    outputs = [
        run("--json", str(plain)),
        run("--json", "-", stdin=plain.read_bytes()),
        run("--json", "-", stdin=BASE.read_bytes()),
    ]
    for output in outputs:
        assert output.returncode == 0
        assert json.loads(output.stdout) | {"name": None} == packed | {"name": None}


def test_how_it_ended_can_be_given(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = show(capsys, DATA / "h200_fail_gpu_util.log")
    assert "no failure found; the log ends in phase: profiling" in out
    _, out, _ = show(capsys, "--exit-status", "-9", DATA / "h200_fail_gpu_util.log")
    assert "host memory" in out
    _, out, _ = show(capsys, "--ended", "timeout", DATA / "h200_fail_gpu_util.log")
    assert "not_ready" in out


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: folder / "absent.log", "does not exist"),
        (lambda folder: folder, "is a directory"),
        (lambda folder: _write(folder / "empty.log", b""), "is empty"),
        (lambda folder: _write(folder / "x.bin", bytes(range(256)) * 40), "is binary"),
        (lambda folder: _write(folder / "x.gz", gzip.compress(b"")), "no data"),
    ],
    ids=["missing", "directory", "empty", "binary", "empty gzip"],
)
def test_bad_input_is_one_clear_line(tmp_path: Path, make, words: str) -> None:
    done = run(str(make(tmp_path)))
    text = done.stderr.decode()
    assert done.returncode == 2
    assert done.stdout == b""
    assert text.count("\n") == 1
    assert words in text
    assert "Traceback" not in text


def _write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_unreadable_file(tmp_path: Path) -> None:
    path = _write(tmp_path / "secret.log", b"x")
    path.unlink()
    path.symlink_to(path)  # unreadable for root as well
    assert run(str(path)).returncode == 2


def test_empty_stdin() -> None:
    done = run("-")
    assert done.returncode == 2
    assert b"standard input is empty" in done.stderr


def test_damaged_gzip_on_stdin() -> None:
    done = run("-", stdin=BASE.read_bytes()[:30] + b"garbage" * 50)
    assert done.returncode == 2
    assert b"damaged" in done.stderr


def test_gzip_cut_short_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    done = run("--json", str(_write(tmp_path / "cut.gz", BASE.read_bytes()[:5000])))
    assert done.returncode == 0
    assert "ends early" in json.loads(done.stdout)["note"]


def test_one_bad_input_does_not_hide_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = show(capsys, BASE, "/nowhere/x.log")
    assert status == 2
    assert "8,894,691" in out
    assert err.count("\n") == 1


def test_text_that_is_no_server_log(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, out, _ = show(capsys, _write(tmp_path / "notes.txt", b"hello\nworld\n"))
    assert status == 0
    assert "neither vLLM nor SGLang recognised" in out


def test_reader_that_stops_early_is_no_error() -> None:
    command = f"{sys.executable} -m scripts.parse_log {DFLASH} | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=ROOT, capture_output=True, check=False, timeout=120
    )
    assert b"Traceback" not in done.stderr
    assert done.stdout.count(b"\n") == 1


def test_imports_stay_light() -> None:
    code = (
        "import sys; import scripts.lib.logs; print([m for m in ('polars', 'numpy', 'snakemake', 'openai', "
        "'yaml') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() in ("[]", "['yaml']")
