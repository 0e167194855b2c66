import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.no_skips import VARIABLE

TESTS = """
import pytest

def test_well(): pass

@pytest.mark.skip(reason="no Slurm here")
def test_marked(): pass

def test_asked(): pytest.skip("no Chromium here")

@pytest.fixture
def cluster(): pytest.skip("no cluster here")

def test_with_fixture(cluster): pass

@pytest.mark.xfail(reason="known")
def test_known(): assert False
"""


def run(folder, **environment):
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.no_skips",
        "-p",
        "no:cacheprovider",
        "-q",
        "-rfs",
        str(folder),
    ]
    return subprocess.run(
        command,
        cwd=Path(__file__).parents[1],
        env={name: value for name, value in os.environ.items() if name != VARIABLE} | environment,
        capture_output=True,
        text=True,
    )


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]")
    (tmp_path / "test_some.py").write_text(TESTS)
    return tmp_path


def test_skips_are_skips_where_nothing_forbids_them(folder):
    result = run(folder)
    assert result.returncode == 0
    assert "1 passed, 3 skipped, 1 xfailed" in result.stdout


def test_where_nothing_may_be_skipped_a_skip_is_a_failure_with_its_reason(folder):
    result = run(folder, **{VARIABLE: "1"})
    assert result.returncode == 1
    assert "1 failed, 1 passed, 1 xfailed, 2 errors" in result.stdout
    for reason in ("no Slurm here", "no Chromium here", "no cluster here"):
        assert reason in result.stdout


def test_a_module_that_skips_itself_is_a_failure_too(folder):
    (folder / "test_some.py").write_text("import pytest\npytest.importorskip('no_such_module')\n")
    assert run(folder).returncode == 5
    result = run(folder, **{VARIABLE: "1"})
    assert result.returncode not in (0, 5)
    assert "no_such_module" in result.stdout
