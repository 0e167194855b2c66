"""Long commands: their output is kept, the user hears of them, and nothing outlives the caller."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scripts.lib.provision.command import ProvisionError, provide, run
from tests.lib.provision import ROOT

PYTHON = sys.executable


def test_output_and_status_come_back_and_the_log_is_appended_to(tmp_path):
    log = tmp_path / "folder" / "log"
    command = [
        PYTHON,
        "-c",
        "import sys; print('out', flush=True); print('err', file=sys.stderr); sys.exit(3)",
    ]
    assert run(command, log, "x", str) == (3, "out\nerr\n")
    assert run([PYTHON, "-c", "print('again')"], log, "x", str) == (0, "again\n")
    assert "out\nerr\n" in log.read_text()
    assert log.read_text().endswith("again\n")


def test_the_console_hears_of_progress(tmp_path, capsys):
    code = "import time; print('one', flush=True); time.sleep(1)"
    run([PYTHON, "-c", code], tmp_path / "log", "building it", lambda text: text.strip(), report_every_s=0.3)
    said = capsys.readouterr().err
    assert "building it: one; " in said


def test_a_quick_command_says_nothing(tmp_path, capsys):
    run([PYTHON, "-c", ""], tmp_path / "log", "building it", str)
    assert capsys.readouterr().err == ""


def test_a_command_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(ProvisionError, match=r"/no/such cannot be started: No such file"):
        run(["/no/such"], tmp_path / "log", "x", str)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_command_ends_with_its_caller(tmp_path, number):
    pid_file = tmp_path / "pid"
    child = f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    code = (
        "import sys; from pathlib import Path; from scripts.lib.provision.command import run; "
        f"run([sys.executable, '-c', {child!r}], Path({str(tmp_path / 'log')!r}), 'x', str)"
    )
    caller = subprocess.Popen([PYTHON, "-c", code], cwd=ROOT, stderr=subprocess.DEVNULL)
    pid = int(_await(lambda: pid_file.exists() and pid_file.read_text()))
    caller.send_signal(number)
    assert caller.wait(10) != 0
    _await(lambda: not _running(pid))


def test_a_provision_error_is_one_line_and_a_failed_job(tmp_path, capsys):
    def work():
        raise ProvisionError("no disk. Free some")

    assert provide(work, tmp_path / "log") == 1
    assert capsys.readouterr().err.splitlines()[-1].endswith("no disk. Free some")
    assert provide(lambda: None, tmp_path / "log") == 0


def _running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


def _await(condition):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within 10 s (pid {os.getpid()})")
