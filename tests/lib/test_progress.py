import pytest

from scripts.lib import progress


@pytest.fixture
def path(tmp_path, monkeypatch):
    path = tmp_path / "results" / "progress.json"
    monkeypatch.setenv(progress.PROGRESS_VARIABLE, str(path))
    return path


def test_counts_and_time_left(path):
    progress.begin(path, {"b1", "b2"}, {"c1", "c2", "c3", "c4"})
    assert progress.current() == progress.Progress(2, 4, (), ())
    assert progress.time_left(progress.current()) == ""
    progress.record("boot", "b1", 30)
    progress.record("cell", "c1", 10)
    counts = progress.record("cell", "c2", 20)
    # one boot of 30 s and two cells of 15 s on average
    assert counts.seconds_left() == pytest.approx(60)
    assert progress.time_left(counts) == "; about 60 s left"


def test_a_second_start_of_the_same_boot_counts_once(path):
    progress.begin(path, {"b1"}, {"c1"})
    progress.record("boot", "b1", 30)
    assert progress.record("boot", "b1", 10).boot_seconds == (10,)


def test_nothing_is_counted_outside_a_run(path, monkeypatch):
    assert progress.current() is None
    monkeypatch.delenv(progress.PROGRESS_VARIABLE)
    assert progress.record("cell", "c", 1.0) is None
    progress.conclude("x")


def test_a_torn_file_is_no_error(path):
    progress.begin(path, {"b1"}, {"c1"})
    path.with_suffix(".done.jsonl").write_text('{"what": "cell"')
    assert progress.read(path) is None


def test_the_closing_line_is_of_this_run(path):
    progress.begin(path, set(), set())
    assert "did not finish" in progress.closing_line(path)
    progress.conclude("2 of 4 cells failed")
    assert progress.closing_line(path) == "2 of 4 cells failed"
    progress.begin(path, set(), set())
    assert "did not finish" in progress.closing_line(path)


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (89, "89 s"), (90, "2 min"), (3600, "60 min"), (7500, "2 h 05 min")]
)
def test_duration(seconds, words):
    assert progress.duration(seconds) == words
