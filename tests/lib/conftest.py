"""Fixtures of several tests here."""

from __future__ import annotations

import pytest


@pytest.fixture
def slurm_commands(tmp_path, monkeypatch):
    """Puts stand-ins of this shell text on an otherwise empty PATH; squeue and sacct say nothing unless given."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()

    def put(**texts):
        for name, text in {"squeue": "", "sacct": "", "sbatch": "", "sinfo": "", **texts}.items():
            (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
            (tmp_path / "bin" / name).chmod(0o755)

    return put
