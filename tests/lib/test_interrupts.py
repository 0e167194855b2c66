import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARENT = """
import signal, subprocess, sys, time
from scripts.lib.interrupts import forward_to_jobs
forward_to_jobs()
job = subprocess.Popen([sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"])
try:
    status = job.wait()
except KeyboardInterrupt:
    status = job.wait()
    print("interrupted", flush=True)
print(status, flush=True)
"""


def start(ignore=False):
    def setup():
        if ignore:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    process = subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, text=True, preexec_fn=setup
    )
    assert process.stdout.readline() == "up\n"
    return process


@pytest.mark.parametrize(("number", "words"), [(signal.SIGTERM, ""), (signal.SIGINT, "interrupted\n")])
def test_jobs_are_ended_before_the_run_is(number, words):
    process = start()
    os.kill(process.pid, number)
    output, _ = process.communicate(timeout=20)
    # Python's own SIGTERM default is not callable, so here only the job ends and its status is told.
    assert output == f"{words}{-signal.SIGTERM}\n"


def test_an_ignored_interrupt_stays_ignored():
    process = start(ignore=True)
    os.kill(process.pid, signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    process.terminate()
    process.communicate(timeout=20)
