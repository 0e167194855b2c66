"""Whether the engine can be built somewhere, told from facts about that machine."""

from dataclasses import replace

import pytest

from scripts.lib.provision.machine import Machine, obstacles, this_machine

GOOD = Machine("Linux", "x86_64", (3, 12), (2, 36), frozenset({"sse2", "avx2"}), 50.0, True)


def test_a_usual_machine_has_no_obstacle():
    assert obstacles(GOOD) == []
    assert obstacles(replace(GOOD, architecture="aarch64", cpu_flags=frozenset({"asimd"}))) == []


def test_unknown_processor_flags_are_no_obstacle():
    assert obstacles(replace(GOOD, cpu_flags=frozenset())) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"system": "Darwin", "architecture": "arm64"}, "this is Darwin on arm64"),
        ({"architecture": "ppc64le"}, "this is Linux on ppc64le"),
        ({"glibc": None}, "this system has another C library"),
        ({"glibc": (2, 28)}, "glibc 2.31 or newer, and this system has glibc 2.28"),
        ({"cpu_flags": frozenset({"sse2", "avx"})}, "AVX2"),
    ],
)
def test_where_it_can_never_run_one_message_names_other_engines(change, words):
    (message,) = obstacles(replace(GOOD, **change))
    assert words in message
    assert "`external`" in message
    assert "`vllm-0.27.1`" in message


@pytest.mark.parametrize(
    ("change", "words", "remedy"),
    [
        ({"python": (3, 15)}, "Python 3.11 to 3.14", "make sweep PYTHON=python3.12"),
        ({"python": (3, 10)}, "runs on Python 3.10", "make sweep PYTHON=python3.12"),
        ({"can_make_environments": False}, "venv and ensurepip", "apt install python3-venv"),
        ({"free_gib": 1.234}, "1.2 GiB are free", "Free some"),
    ],
)
def test_what_can_be_mended_names_the_remedy(change, words, remedy):
    (message,) = obstacles(replace(GOOD, **change))
    assert words in message
    assert remedy in message


def test_all_that_can_be_mended_is_told_at_once():
    assert len(obstacles(replace(GOOD, python=(3, 10), free_gib=0.0, can_make_environments=False))) == 3


def test_this_machine_is_read_for_a_folder_that_does_not_exist_yet(tmp_path):
    here = this_machine(tmp_path / "a" / "b")
    assert here.system
    assert here.free_gib > 0
    assert here.can_make_environments
