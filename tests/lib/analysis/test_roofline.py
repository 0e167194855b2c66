"""What memory bandwidth allows, by mental arithmetic."""

from __future__ import annotations

import pytest

from scripts.lib.analysis.roofline import Facts, facts, roof
from scripts.lib.config import REPOSITORY, ConfigError
from scripts.lib.parts import load_hardware, load_model

CONFIG = [REPOSITORY / "config"]


def point(concurrency: int = 1, prompt: int | None = None, answer: float | None = None) -> dict[str, object]:
    return {
        "concurrency": concurrency,
        "prompt_tokens": prompt,
        "completed": 10,
        "tokens_per_request": answer,
    }


def test_15_gb_of_dense_weights_on_a_dgx_spark_give_18_tokens_a_second() -> None:
    """spec.md, section 1."""
    spark = load_hardware("dgx-spark", CONFIG)
    known = facts(spark, {"parameters_b": 30, "active_weight_gb": 15}, 1, None)
    found = roof(known, point(), None, 1.0)
    assert found.limit_tps == pytest.approx(18.2)
    assert found.step_gb == 15


def test_active_weights_follow_from_the_measured_ones() -> None:
    """17.62 GiB (study B) of which 3 of 30 billion parameters are active: 1.892 GB, 144 steps/s at 273 GB/s."""
    spark, model = load_hardware("dgx-spark", CONFIG), load_model("nemotron-3.5-lightning-nvfp4", CONFIG)
    known = facts(spark, model.facts, 1, "fp8")
    found = roof(known, point(), 17.62, 1.0)
    assert found.step_gb == pytest.approx(1.892, abs=0.001)
    assert found.limit_tps == pytest.approx(144.3, abs=0.1)
    assert 81.27 / found.limit_tps == pytest.approx(0.56, abs=0.01), "study A's baseline"
    assert roof(known, point(), 17.62, 3.27).limit_tps == pytest.approx(3.27 * found.limit_tps)


def test_the_kv_cache_is_read_by_every_request() -> None:
    """2 * 6 layers * 2 heads * 128 * 1 byte = 3072 bytes a token; 8 requests of 1000 + 200 / 2 tokens."""
    model = load_model("nemotron-3.5-lightning-nvfp4", CONFIG)
    known = facts(load_hardware("dgx-spark", CONFIG), model.facts, 1, "fp8_e4m3")
    assert known.kv_bytes_per_token == 3072
    found = roof(known, point(8, prompt=10_000, answer=200.0), 17.62, 1.0)
    assert found.kv_gb == pytest.approx(8 * 1100 * 3072 / 1e9)
    assert found.limit_tps == pytest.approx(8 * 273 / (1.892 + 0.02703), rel=1e-3)
    assert facts(None, model.facts, 1, None).kv_bytes_per_token == 6144, "16 bits unless it is quantised"


def test_devices_add_their_bandwidth() -> None:
    assert facts(load_hardware("h100", CONFIG), {}, 4, None).bandwidth_gb_s == 4 * 3350


@pytest.mark.parametrize(
    ("known", "weights", "length", "words"),
    [
        (Facts(active_weight_gb=15), None, 1.0, "no memory bandwidth"),
        (Facts(bandwidth_gb_s=273), 17.0, 1.0, "active weights are not known"),
        (Facts(bandwidth_gb_s=273, active_share=0.1), None, 1.0, "active weights are not known"),
        (Facts(bandwidth_gb_s=273, active_weight_gb=15), None, None, "tokens per step"),
    ],
)
def test_what_is_missing_is_said(known, weights, length, words) -> None:
    found = roof(known, point(), weights, length)
    assert found.limit_tps is None
    assert words in found.reason


def test_a_hybrid_model_without_its_attention_layers_has_no_known_kv_size() -> None:
    shape = {"layers": 52, "kv_heads": 2, "head_dim": 128}
    assert facts(None, shape | {"hybrid": True}, 1, None).kv_bytes_per_token is None
    assert facts(None, shape, 1, None).kv_bytes_per_token == 2 * 52 * 2 * 128 * 2


def test_a_misspelt_fact_is_refused(tmp_path) -> None:
    """It would silently leave the limit unknown."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "m.yaml").write_text(
        "description: m\ntarget: o/m\nfacts: {active_weight_bg: 15}\n"
    )
    with pytest.raises(ConfigError, match="did you mean 'active_weight_gb'"):
        load_model("m", [tmp_path])
