import json
import os
import platform
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.lib.cell import Cell, Server
from scripts.lib.processes import start_ticks
from scripts.lib.receipts import fingerprint
from scripts.lib.store import CellStore, State, StoreError, canonical_json, damage, differences, key_of

CELL = Cell(Server("cpu", "vllm", "m", "mtp", 3, 1024), "code", 4, 1)
IDENTITY = {"argv": ["vllm", "serve"], "concurrency": 4, "environment": {"A": "1"}}
KEY = key_of(IDENTITY)


def fill(store: CellStore, key: str = KEY, status: str = "measured", retry: bool = False) -> Path:
    with store.writing(CELL, key) as folder:
        failure = None if status == "measured" else {"class": "unknown", "retry": retry}
        manifest = {"key": key, "identity": IDENTITY, "status": status, "failure": failure, "retry": retry}
        (folder / "manifest.json").write_text(json.dumps(manifest))
        (folder / "requests.jsonl").write_text('{"index": 0}\n' * 3)
    return store.folder(CELL, key)


@pytest.fixture
def store(tmp_path):
    return CellStore(tmp_path / "store")


def test_absent_until_written_then_measured(store):
    assert store.state(CELL, KEY) is State.ABSENT
    fill(store)
    assert store.state(CELL, KEY) is State.MEASURED
    assert State.MEASURED.finished
    assert State.FAILED.finished
    assert not any(state.finished for state in (State.ABSENT, State.RETRY, State.DAMAGED))


def test_an_exception_while_writing_leaves_nothing(store):
    def interrupted():
        with store.writing(CELL, KEY) as folder:
            (folder / "manifest.json").write_text("{}")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        interrupted()
    assert store.state(CELL, KEY) is State.ABSENT
    assert list((store.root / ".incoming").iterdir()) == []


def test_what_a_killed_process_was_writing_is_removed_later(store):
    gone = subprocess.Popen(["true"])
    gone.wait()
    incoming = store.root / ".incoming"
    hour_ago = time.time() - 4000

    def left(pid, ticks, node=None, since=hour_ago):
        folder = incoming / f"{node or platform.node()} {pid} {ticks} abcd"
        folder.mkdir(parents=True)
        (folder / "requests.jsonl").write_text("half")
        os.utime(folder, (since, since))
        return folder

    abandoned = left(gone.pid, 12)
    kept = [
        left(os.getpid(), start_ticks(os.getpid())),
        left(gone.pid, 13, since=time.time()),
        left(gone.pid, 14, node="another-machine"),
    ]
    fill(store)
    assert not abandoned.exists()
    assert all(folder.exists() for folder in kept)


@pytest.mark.parametrize("name", ["manifest.json", "requests.jsonl", "SHA256SUMS"])
@pytest.mark.parametrize("harm", ["truncate", "nul", "delete", "flip"])
def test_any_damage_to_any_file_is_noticed(store, name, harm):
    path = fill(store) / name
    data = path.read_bytes()
    if harm == "delete":
        path.unlink()
    else:
        flipped = bytes([data[0] ^ 1]) + data[1:]
        path.write_bytes({"truncate": data[: len(data) // 2], "nul": bytes(len(data)), "flip": flipped}[harm])
    assert store.state(CELL, KEY) is State.DAMAGED


def test_checksums_are_readable_by_sha256sum(store):
    folder = fill(store)
    assert subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder).returncode == 0


def test_evidence_under_a_wrong_key_is_damage(store):
    folder = fill(store)
    other = key_of({"x": 1})
    folder.rename(store.folder(CELL, other))
    assert store.state(CELL, other) is State.DAMAGED


def test_finished_evidence_is_never_replaced(store):
    folder = fill(store)
    before = (folder / "SHA256SUMS").read_text()
    fill(store, status="failed")
    assert (folder / "SHA256SUMS").read_text() == before


@pytest.mark.parametrize("first", ["retry", "damaged"])
def test_an_earlier_try_is_set_aside_for_the_next_one(store, first):
    folder = fill(store, status="failed", retry=True)
    if first == "damaged":
        (folder / "requests.jsonl").write_bytes(b"\0")
    fill(store)
    assert store.state(CELL, KEY) is State.MEASURED
    assert store.discarded(CELL, KEY) == 1


@pytest.mark.parametrize("harm", ["truncate", "nul", "replace"])
def test_a_receipt_does_not_hide_what_was_written_since(store, harm):
    folder = fill(store)
    trusting = CellStore(store.root, {f"{CELL.path}/{KEY[:16]}": fingerprint(folder)})
    assert trusting.state(CELL, KEY) is State.MEASURED
    path = folder / "requests.jsonl"
    stat, data = path.stat(), path.read_bytes()
    if harm == "replace":
        path.unlink()
    path.write_bytes(data[:-1] if harm == "truncate" else bytes(len(data)))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert trusting.state(CELL, KEY) is State.DAMAGED


def test_a_receipt_spares_the_reading(store, monkeypatch):
    folder = fill(store)
    monkeypatch.setattr("scripts.lib.store.damage", lambda _: "read")
    assert store.state(CELL, KEY) is State.DAMAGED
    receipts = {f"{CELL.path}/{KEY[:16]}": fingerprint(folder)}
    assert CellStore(store.root, receipts).state(CELL, KEY) is State.MEASURED
    assert CellStore(store.root, {f"{CELL.path}/{KEY[:16]}": "0"}).state(CELL, KEY) is State.DAMAGED


def test_a_permanent_failure_is_finished_and_a_passing_one_is_not(store):
    fill(store, status="failed", retry=False)
    assert store.state(CELL, KEY) is State.FAILED
    other = key_of({"x": 2})
    fill(store, other, status="failed", retry=True)
    assert store.state(CELL, other) is State.RETRY


def test_forget_sets_aside_and_keeps(store):
    assert not store.forget(CELL, KEY)
    folder = fill(store)
    assert store.forget(CELL, KEY)
    assert store.state(CELL, KEY) is State.ABSENT
    assert damage(folder.with_name(folder.name + ".attempt-1")) is None


def test_a_full_disk_is_one_clear_error(store, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("scripts.lib.store._sync", full)
    with pytest.raises(StoreError, match=r"No space left on device.*Nothing measured before is lost"):
        fill(store)
    assert store.state(CELL, KEY) is State.ABSENT


def test_others_and_differences_name_the_component(store):
    fill(store)
    wanted = {"argv": ["vllm", "serve", "--x"], "concurrency": 4, "environment": {"A": "2"}}
    ((_, stored),) = store.others(CELL, key_of(wanted))
    assert [d.component for d in differences(stored, wanted)] == ["argv", "environment.A"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), json_values, max_size=5))
def test_key_does_not_depend_on_order_and_survives_json(identity):
    shuffled = dict(reversed(identity.items()))
    assert key_of(identity) == key_of(shuffled) == key_of(json.loads(canonical_json(identity)))
