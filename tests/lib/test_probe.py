from __future__ import annotations

import pytest

from scripts.lib import probe
from tests.fake_server.cli import SGLANG
from tests.fake_server.running import serving


@pytest.mark.parametrize(("words", "version"), [((), "0.27.1"), ((SGLANG,), "0.5.15")])
def test_each_engine_says_its_release(tmp_path, words, version):
    with serving(tmp_path, {}, *words) as server:
        base_url = f"http://127.0.0.1:{server.port}/v1"
        assert probe.engine_version(base_url) == version
        assert probe.healthy(base_url, timeout_s=3.0)
        assert probe.first_model(base_url) == "m"


def test_nobody_there():
    nowhere = f"http://127.0.0.1:{probe.free_port()}/v1"
    assert probe.engine_version(nowhere) is None
    assert not probe.healthy(nowhere)
    with pytest.raises(probe.Unreachable):
        probe.first_model(nowhere)
