import pytest

from scripts.lib import progress
from scripts.lib.progress import Work


@pytest.fixture
def path(tmp_path, monkeypatch):
    path = tmp_path / "results" / "progress.json"
    monkeypatch.setenv(progress.PROGRESS_VARIABLE, str(path))
    return path


PLAN = {"b1": Work(("c1", "c2")), "b2": Work(("c3", "c4"))}


def test_counts_and_time_left(path):
    progress.begin(path, PLAN)
    assert progress.read(path) == progress.Progress(PLAN, {}, {})
    assert progress.cells_of_run(path) == ["c1", "c2", "c3", "c4"]
    assert progress.time_left(progress.read(path)) == ""
    progress.record("boot", "b1", 30)
    progress.record("cell", "c1", 10)
    counts = progress.record("cell", "c2", 20)
    # one boot of 30 s and two cells of 15 s on average
    assert counts.seconds_left() == pytest.approx(60)
    assert progress.time_left(counts) == "; about 60 s left"


def test_servers_that_share_a_machine_are_done_sooner(path):
    left = {f"b{i}": Work((f"c{i}",), share=0.5) for i in range(1, 5)}

    def seconds(plan):
        progress.begin(path, plan)
        progress.record("boot", "b1", 30)
        return progress.record("cell", "c1", 10).seconds_left()

    # three of 40 s are left, on two GPUs
    assert seconds(left) == pytest.approx(60)
    assert seconds(left | {"b4": Work(("c4",), share=1.0)}) == pytest.approx(80), "one of them needs both"
    assert seconds({name: left[name] for name in ("b1", "b2")}) == pytest.approx(40), "the last runs alone"


def test_boots_and_cells_are_numbered_as_they_begin(path):
    progress.begin(path, PLAN)
    assert [progress.number("boot", boot) for boot in ("b2", "b1")] == [" 1/2", " 2/2"]
    assert progress.number("cell", "c3") == " 1/4"
    progress.record("boot", "b2", 30)
    assert progress.number("cell", "c1") == " 2/4"
    assert progress.number("cell", "c3") == " 1/4", "tried once more"
    assert progress.read(path).cell_seconds == {}


def test_a_second_start_of_the_same_boot_counts_once(path):
    progress.begin(path, PLAN)
    progress.record("boot", "b1", 30)
    assert progress.record("boot", "b1", 10).boot_seconds == {"b1": 10}


def test_nothing_is_counted_outside_a_run(path, monkeypatch):
    assert progress.read(path) is None
    assert progress.cells_of_run(path) == []
    assert progress.number("boot", "b1") == ""
    monkeypatch.delenv(progress.PROGRESS_VARIABLE)
    assert progress.record("cell", "c", 1.0) is None
    assert progress.number("boot", "b1") == ""
    progress.conclude("x")


def test_a_torn_file_is_no_error(path):
    progress.begin(path, PLAN)
    path.with_suffix(".done.jsonl").write_text('{"what": "cell"')
    assert progress.read(path) is None


def test_the_closing_line_is_of_this_run(path):
    progress.begin(path, {})
    assert "did not finish" in progress.closing_line(path)
    progress.conclude("2 of 4 cells failed")
    assert progress.closing_line(path) == "2 of 4 cells failed"
    progress.begin(path, {})
    assert "did not finish" in progress.closing_line(path)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        *[
            (0.4, "0 s"),
            (89.4, "89 s"),
            (89.9, "90 s"),
            (90, "1 min 30 s"),
            (120.1, "2 min"),
            (134.9, "2 min 15 s"),
        ],
        *[(597, "9 min 55 s"), (599, "10 min"), (629, "10 min"), (3600, "60 min"), (7500, "2 h 05 min")],
    ],
)
def test_duration(seconds, words):
    assert progress.duration(seconds) == words


def test_a_line_every_quarter_of_a_minute_tells_another_time():
    told = [progress.duration(seconds) for seconds in range(15, 600, 15)]
    assert len(set(told)) == len(told)
