"""Configs and resolved servers for the planning tests."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from scripts.lib.cell import AXES, Server
from scripts.lib.config import REPOSITORY, read_yaml
from scripts.lib.methods import METHOD_KINDS, Method
from scripts.lib.parts import Drafter, Engine, Hardware, Model
from scripts.lib.resolve import Resolved, resolve
from scripts.lib.sweep import Sweep, load_sweep

CONFIG = REPOSITORY / "config"


def smoke(**changes: Any) -> dict[str, Any]:
    """config/smoke.yaml with some keys replaced; `...` removes one."""
    config = read_yaml(CONFIG / "smoke.yaml")
    config.update(copy.deepcopy(changes))
    return {key: value for key, value in config.items() if value is not ...}


def sweep(*config_dirs: Path, **changes: Any) -> Sweep:
    return load_sweep(smoke(**changes), [*config_dirs, CONFIG])


def study(name: str) -> Sweep:
    return load_sweep(read_yaml(CONFIG / "studies" / f"{name}.yaml"), [CONFIG])


def hardware(**changes: Any) -> Hardware:
    values: dict[str, Any] = {
        "name": "box",
        "description": "",
        "accelerator": "gpu",
        "memory_gib": None,
        "memory_bandwidth_gb_s": None,
        "unified_memory": False,
        "nvml_name": None,
        "vllm_defaults": {},
        "max_gpu_memory_utilization": None,
        "slurm": {"cpus": 8, "mem_mb": 64000},
        "kubernetes": {},
        "flags": {},
        "environment": {},
        "overrides": (),
    }
    return Hardware(**values | changes)


def engine(**changes: Any) -> Engine:
    values: dict[str, Any] = {
        "name": "eng",
        "description": "",
        "kind": "vllm",
        "launcher": "process",
        "version": "0.27.1",
        "command": ("vllm", "serve", "{model}"),
        "container": None,
        "base_url": None,
        "log_file": None,
        "api_key_name": None,
        "flags": {},
        "environment": {},
        "environment_names": (),
        "overrides": (),
        "needs": (),
        "method_needs": {},
        "requirements": (),
        "build": None,
        "log_interval_s": 10,
    }
    return Engine(**values | changes)


def model(**changes: Any) -> Model:
    values: dict[str, Any] = {
        "name": "target",
        "description": "",
        "target": "org/target",
        "revision": None,
        "context_length": None,
        "facts": {},
        "has_mtp": True,
        "mtp_n_predict": 1,
        "drafters": {kind: Drafter(f"org/{kind}") for kind in ("eagle", "draft_model", "dspark", "dflash")},
        "needs": (),
        "flags": {},
        "environment": {},
        "overrides": (),
    }
    return Model(**values | changes)


def resolved(
    method: str = "mtp",
    k: int = 3,
    max_model_len: int = 4096,
    *,
    machine: Hardware | None = None,
    build: Engine | None = None,
    target: Model | None = None,
    flags: dict[str, Any] | None = None,
    speculative_config: dict[str, Any] | None = None,
    environment: dict[str, Any] | None = None,
) -> Resolved:
    """One server from parts made up for a test; `flags` are the method's."""
    assert method in METHOD_KINDS
    entry = Method(
        method, method, (k,) if k else (), speculative_config or {}, flags or {}, environment or {}
    )
    server = Server("box", "eng", "target", method, k, max_model_len)
    return resolve(server, machine or hardware(), build or engine(), target or model(), entry)


junk = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-2, 2**40),
        st.floats(),
        st.text(max_size=4),
        st.dates(),
        st.sampled_from(["cpu", "mtp", "none", "vllm-process", "external", "smollm2", "code", "{model}"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(st.text(max_size=3), st.sampled_from(AXES), st.integers()), inner, max_size=3
        ),
    ),
    max_leaves=6,
)
"""Anything YAML can hold, with some words that mean something in a config."""
