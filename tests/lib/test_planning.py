"""What is due, and which files say so to Snakemake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts.lib.cluster import WHOLE_MACHINE
from scripts.lib.planning import Plan
from scripts.lib.pointer import Pointer
from scripts.lib.receipts import fingerprint, note_receipts
from scripts.lib.specs import write_specs
from tests.planning import sweep


@pytest.fixture
def made(tmp_path):
    return sweep(store=str(tmp_path / "store"))


@pytest.fixture
def plan(made, tmp_path):
    return Plan(made, str(tmp_path / "results/cells"))


def again(plan):
    """What a later run plans."""
    return Plan(plan.sweep, plan.cells_folder)


def measured(plan, cell, status="measured", retry=False):
    with plan.store.writing(cell, plan.key(cell)) as folder:
        manifest = {"key": plan.key(cell), "identity": {}, "status": status, "failure": None, "retry": retry}
        (folder / "manifest.json").write_text(json.dumps(manifest))
    Pointer(cell, plan.key(cell), str(plan.folder(cell))).write(Path(plan.next_try(cell)))


def test_a_due_cell_asks_for_a_try_that_is_not_there(plan):
    cell = plan.sweep.cells[0]
    assert plan.awaited(cell).endswith(f"results/cells/{cell.path}/try-1.json")
    assert plan.needs_server(cell)


def test_a_finished_cell_asks_for_nothing_but_its_evidence(plan):
    cell = plan.sweep.cells[0]
    measured(plan, cell)
    later = again(plan)
    assert later.awaited(cell) == f"{later.folder(cell)}/manifest.json"
    assert Path(later.awaited(cell)).exists()
    assert not later.needs_server(cell)
    assert (later.planned, later.asked) == ({cell}, set())


def test_a_cluster_job_that_starts_again_keeps_the_cells_it_was_sent_with(plan):
    done, due = [cell for cell in plan.sweep.cells if cell.boot == plan.sweep.cells[0].boot][:2]
    measured(plan, done)
    job = Plan(plan.sweep, plan.cells_folder, [done.path, due.path])
    assert job.needs_server(done)
    assert job.needs_server(due)
    assert job.asked_on(due.boot) == [due], (
        "the server waits for the cells that are still due, and only for them"
    )
    alone = Plan(plan.sweep, plan.cells_folder, [due.path])
    assert not alone.needs_server(done)


@pytest.mark.parametrize("what", ["retry", "damaged", "gone", "forgotten"])
def test_what_must_be_measured_again_asks_for_the_next_try(plan, what):
    cell = plan.sweep.cells[0]
    measured(plan, cell, *(("failed", True) if what == "retry" else ()))
    manifest = plan.folder(cell) / "manifest.json"
    if what == "damaged":
        manifest.write_bytes(bytes(manifest.stat().st_size))
    elif what == "gone":
        for path in (*plan.folder(cell).iterdir(),):
            path.unlink()
        plan.folder(cell).rmdir()
    elif what == "forgotten":
        plan.store.forget(cell, plan.key(cell))
    later = again(plan)
    assert later.awaited(cell).endswith("/try-2.json")
    assert later.needs_server(cell)


def test_another_flag_asks_for_the_next_try_although_earlier_evidence_is_there(plan, tmp_path):
    cell = plan.sweep.cells[0]
    measured(plan, cell)
    changed = sweep(store=str(tmp_path / "store"), epoch="second")
    assert Plan(changed, plan.cells_folder).awaited(cell).endswith("/try-2.json")


def test_a_run_keeps_to_what_it_planned(plan):
    cell = plan.sweep.cells[0]
    asked = plan.awaited(cell)
    measured(plan, cell)
    assert plan.awaited(cell) == asked


def test_a_pointer_needs_a_try_when_it_is_due_or_wrong(plan, tmp_path):
    cell = plan.sweep.cells[0]
    pointer = tmp_path / "evidence.json"
    assert plan.pointer_needs(cell, pointer) == [plan.next_try(cell)]
    measured(plan, cell)
    later = again(plan)
    assert later.pointer_needs(cell, pointer) == []
    Pointer(cell, later.key(cell), str(later.folder(cell))).write(pointer)
    assert later.pointer_needs(cell, pointer) == []
    for text in ('{"folder": "elsewhere"}', ""):
        pointer.write_text(text)
        assert later.pointer_needs(cell, pointer) == [later.next_try(cell)]


def test_receipts_are_believed(plan):
    cell = plan.sweep.cells[0]
    measured(plan, cell)
    folder = plan.folder(cell)
    (folder / "SHA256SUMS").unlink()
    assert again(plan).state(cell).value == "damaged"
    note_receipts(plan.store.root, {f"{cell.path}/{folder.name}": fingerprint(folder)}, [])
    assert again(plan).state(cell).value == "measured"


def test_jobs_are_told_by_files(plan, tmp_path):
    first, second = plan.sweep.cells[:2]
    assert first.boot == second.boot
    measured(plan, first)
    later = again(plan)
    for cell in (first, second):
        later.needs_server(cell)
    write_specs(later, tmp_path / "cells", tmp_path / "servers")
    for cell in (first, second):
        spec = json.loads((tmp_path / "cells" / cell.path / "spec.json").read_text())
        assert (spec["cell"], spec["key"]) == (cell.axes, later.key(cell))
    (launch,) = (tmp_path / "servers").rglob("launch.json")
    assert launch.parent == tmp_path / "servers" / second.boot.path
    assert json.loads(launch.read_text())["argv"] == list(plan.sweep.launch(second.server).argv)


def test_a_server_counts_its_gpus_and_one_on_the_cpu_the_machine(tmp_path):
    two = {"when": {"method": "none"}, "flags": {"tensor-parallel-size": 2}}
    many = sweep(hardware=["h100"], engine=["vllm-process"], overrides=[two], store=str(tmp_path))
    plan = Plan(many, str(tmp_path))
    assert [plan.devices(boot) for boot in many.boots] == [2, 1, 1]
    for cell in many.cells:
        plan.needs_server(cell)
    assert [work.share for work in plan.work(4).values()] == [0.5, 0.25, 0.25]
    assert [work.share for work in plan.work(1).values()] == [1, 1, 1], (
        "a limit is no less than what a server needs"
    )
    assert [len(work.cells) for work in plan.work(None).values()] == [2, 2, 2]
    on_cpu = sweep(store=str(tmp_path))
    assert Plan(on_cpu, str(tmp_path)).devices(on_cpu.boots[0]) == WHOLE_MACHINE
