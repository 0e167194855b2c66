"""The order in which builds of torch are tried."""

from scripts.lib.provision.torch_build import GENERAL_GIB, INDEX_VARIABLE, attempts


def test_the_cpu_build_comes_first_and_the_general_one_last():
    cpu, general = attempts("2.13.0", {})
    assert cpu.arguments == ("--no-deps", "torch==2.13.0+cpu")
    assert cpu.notice is None
    assert cpu.needs_gib is None
    assert general.arguments == ("torch==2.13.0",)  # with its dependencies: it does not import without them
    assert general.needs_gib == GENERAL_GIB


def test_the_notice_tells_how_to_have_the_small_build():
    _, general = attempts("2.13.0", {})
    assert "not in pip's sources" in general.notice
    assert f"set {INDEX_VARIABLE}" in general.notice


def test_the_users_index_is_asked_in_addition():
    cpu, general = attempts("2.13.0", {INDEX_VARIABLE: " file:///wheels "})
    assert cpu.arguments[-2:] == ("--extra-index-url", "file:///wheels")
    assert f"nor at {INDEX_VARIABLE}" in general.notice
    assert "--extra-index-url" not in general.arguments


def test_an_empty_variable_is_no_index():
    assert attempts("2.13.0", {INDEX_VARIABLE: " "}) == attempts("2.13.0", {})
