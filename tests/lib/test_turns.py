import os
import subprocess
import sys
from pathlib import Path

from scripts.lib.processes import alive, start_ticks
from scripts.lib.turns import ticket_name
from tests.processes import wait_for

ROOT = Path(__file__).parents[2]
HOLD = """
import sys, time
from pathlib import Path
from scripts.lib.turns import turn
folder, number, seconds, expected = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
with turn(folder, ("s", number), expected):
    with (folder / "order").open("a") as f: f.write(f"{number} in\\n")
    time.sleep(seconds)
    with (folder / "order").open("a") as f: f.write(f"{number} out\\n")
"""


def start(folder, number, seconds=0.1, expected=1):
    argv = [sys.executable, "-c", HOLD, str(folder), str(number), str(seconds), str(expected)]
    return subprocess.Popen(argv, cwd=ROOT)


def test_one_at_a_time_in_the_order_of_the_turns(tmp_path):
    first = start(tmp_path, 0, 1.5)
    wait_for(lambda: (tmp_path / "order").exists())
    others = [start(tmp_path, number) for number in (30, -5, 4)]
    for process in [first, *others]:
        assert process.wait(20) == 0
    expected = [f"{n} {what}" for n in (0, -5, 4, 30) for what in ("in", "out")]
    assert (tmp_path / "order").read_text().splitlines() == expected


def test_nobody_goes_before_all_have_come(tmp_path):
    late = start(tmp_path, 8, expected=2)
    wait_for(lambda: (tmp_path / "turn.lock").exists())
    early = start(tmp_path, 1, expected=2)
    assert late.wait(20) == early.wait(20) == 0
    assert (tmp_path / "order").read_text().splitlines() == ["1 in", "1 out", "8 in", "8 out"]


def test_a_killed_holder_and_a_killed_waiter_block_nobody(tmp_path):
    holder = start(tmp_path, 1, 60)
    wait_for(lambda: (tmp_path / "order").exists())
    waiter = start(tmp_path, 2)
    wait_for(lambda: len(list((tmp_path / "tickets").iterdir())) == 2)
    last = start(tmp_path, 3)
    for process in (waiter, holder):
        process.kill()
        process.wait()
    assert last.wait(10) == 0
    assert (tmp_path / "order").read_text().splitlines() == ["1 in", "3 in", "3 out"]


def test_ticket_names_sort_like_turns():
    turns = [("a", -8), ("a", -1), ("a", 1), ("a", 8), ("a", 64), ("b", 1)]
    assert sorted(turns, key=ticket_name) == turns


def test_a_reused_pid_is_not_the_same_process():
    ticks = start_ticks(os.getpid())
    assert alive(os.getpid(), ticks)
    assert not alive(os.getpid(), ticks - 1)
    process = subprocess.Popen(["sleep", "0"])
    process.wait()
    assert start_ticks(process.pid) is None
