"""The promise of the guard: whatever dies, nothing of the server is left, containers included."""

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from scripts.lib import guard
from tests.processes import running_with, wait_for

# A server like an inference engine: a main process, a child in a session of its own that ignores SIGTERM, a grandchild.
SERVER = """
import os, signal, subprocess, sys, time
if len(sys.argv) > 1: signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = "import signal, subprocess, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
child += "subprocess.Popen(['sleep', '300']); time.sleep(300)"
subprocess.Popen([sys.executable, "-c", child], start_new_session=True)
print("up", flush=True)
time.sleep(300)
"""


@pytest.fixture(autouse=True)
def status(tmp_path):
    global STATUS
    STATUS = ["--status", str(tmp_path / "status")]
    return tmp_path / "status"


@pytest.fixture
def marker():
    name = f"guard-test-{uuid.uuid4().hex}"
    yield name
    for pid in running_with(name):
        os.kill(pid, signal.SIGKILL)


def start(marker, *arguments, grace="1"):
    environment = os.environ | {"MARKER": marker}
    argv = [sys.executable, "-S", "-E", guard.__file__, "--grace", grace, *STATUS]
    argv += ["--", sys.executable, "-c", SERVER, *arguments]
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
    )
    assert process.stdout.readline() == b"up\n"
    wait_for(lambda: len(running_with(marker)) == 4, what="guard, server, child and grandchild")
    return process


def gone(marker, limit_s=10):
    return wait_for(lambda: not running_with(marker), limit_s, "every process to go")


def test_closing_the_lifeline_stops_everything(marker):
    process = start(marker)
    process.stdin.close()
    assert gone(marker) < 5
    assert process.wait() == 128 + signal.SIGTERM


def test_a_server_that_ignores_sigterm_is_killed_after_the_grace(marker):
    process = start(marker, "ignore")
    process.stdin.write(b"stop 0.5\n")
    process.stdin.flush()
    gone(marker)
    assert process.wait() == 128 + signal.SIGKILL


def test_the_death_of_the_holder_by_sigkill_stops_everything(marker):
    holder_code = f"""
import subprocess, sys, time
p = subprocess.Popen([sys.executable, "-S", "-E", {guard.__file__!r}, "--grace", "1", *{STATUS!r}, "--", sys.executable, "-c", {SERVER!r}],
                     stdin=subprocess.PIPE, start_new_session=True)
time.sleep(300)
"""
    holder = subprocess.Popen([sys.executable, "-c", holder_code], env=os.environ | {"MARKER": marker})
    wait_for(lambda: len(running_with(marker)) == 5, what="holder, guard, server, child and grandchild")
    holder.kill()
    holder.wait()
    gone(marker)


def test_a_server_that_ends_by_itself_takes_its_children_along(marker):
    process = start(marker)
    (server,) = guard.children()[process.pid]
    os.kill(server, signal.SIGKILL)
    gone(marker)
    assert process.wait() == 128 + signal.SIGKILL


def test_a_killed_guard_takes_the_main_process_along(marker):
    process = start(marker)
    (server,) = guard.children()[process.pid]
    process.kill()
    process.wait()
    wait_for(lambda: server not in running_with(marker), what="the main process to go")


def test_signals_of_the_terminal_do_not_end_it(marker):
    process = start(marker)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(process.pid, number)
    time.sleep(0.5)
    assert process.poll() is None


def test_a_command_that_does_not_exist_is_status_127_with_one_line(tmp_path):
    argv = [sys.executable, "-S", "-E", guard.__file__, "--grace", "1", *STATUS, "--", "/no/such/engine"]
    result = subprocess.run(argv, stdin=subprocess.PIPE, capture_output=True, text=True)
    assert result.returncode == 127
    assert result.stderr == "cannot start /no/such/engine: No such file or directory\n"


def test_the_container_is_removed_by_its_id(tmp_path):
    docker = tmp_path / "docker"
    docker.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n')
    docker.chmod(0o755)
    cidfile = tmp_path / "cid"
    cidfile.write_text("c0ffee")
    argv = [
        sys.executable,
        "-S",
        "-E",
        guard.__file__,
        "--grace",
        "1",
        *STATUS,
        "--cidfile",
        str(cidfile),
        "--",
        "true",
    ]
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    # The lifeline stays open: the container goes because its program ended by itself.
    assert subprocess.Popen(argv, stdin=subprocess.PIPE, env=environment).wait(20) == 0
    assert Path(tmp_path, "calls").read_text() == "rm --force --volumes c0ffee\n"


def test_the_end_is_told_before_everything_is_gone(marker, status):
    """A cell must learn of the death at once; clearing up may take seconds."""
    process = start(marker)
    (server,) = guard.children()[process.pid]
    os.kill(server, signal.SIGKILL)
    wait_for(status.exists, 5, "the exit status")
    assert status.read_text() == str(128 + signal.SIGKILL)
    process.wait()
