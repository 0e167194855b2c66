"""The gate before timing: a server that talks nonsense is not measured and says what it said; a sane one is."""

import json

LATER = 2
"""The gate's questions after the first completion: so many completions come before a boot's first cell."""


def outcome(row):
    return row["status"], row["failure_class"], row["failure_phase"]


def mtp(project, concurrency):
    return outcome(project.cell("mtp", concurrency))


def test_a_server_that_talks_nonsense_is_not_timed(project):
    said = {
        ("repetition", 1): "the the the",
        ("empty", 2): "''",
        ("one_token", 3): "The",
        ("gibberish", 4): "hardly any text",
    }
    project.save(method=[{"name": "none"}, {"name": "mtp", "k": [k for _, k in said]}])
    project.faults(*({"kind": "garbage_output", "method": "mtp", "k": k, "mode": mode} for mode, k in said))
    output = project.run(status=1)
    assert project.measured == ["none len1024 c1", "none len1024 c4"], "the other server is measured"
    assert len(project.starts) == 1 + len(said), output
    for (_, k), words in said.items():
        rows = [project.cell("mtp", concurrency, k=k) for concurrency in (1, 4)]
        assert [outcome(row) for row in rows] == [("failed", "infeasible", "gate")] * 2
        assert "the server answers nonsense: asked" in rows[0]["failure_cause"]
        assert words in rows[0]["failure_cause"]
        assert rows[0]["aggregate_tps"] is None
        assert "forget" in rows[0]["failure_fix"]
        manifest = json.loads((project.evidence("mtp", k, 1) / "manifest.json").read_text())
        assert len(manifest["server"]["gate"]) == 3
        assert not (project.evidence("mtp", k, 1) / "requests.jsonl").read_text()

    project.faults()
    project.run(status=1)
    assert project.starts == [], "the same launch would say the same again"


def test_one_insane_answer_of_three_is_enough(project):
    project.faults({"kind": "garbage_output", "method": "mtp", "from_request": 1 + LATER, "times": 1})
    project.run(status=1)
    assert mtp(project, 1) == ("failed", "infeasible", "gate")


def test_the_gate_says_nothing_about_what_comes_after_it(project):
    project.faults({"kind": "garbage_output", "method": "mtp", "from_request": 2 + LATER})
    project.run()
    assert mtp(project, 1)[0] == "measured"


def test_without_the_gate_nonsense_is_measured_and_kept_apart(project):
    project.faults({"kind": "garbage_output", "method": "mtp"})
    project.run(status=1)
    project.save(gate=False)
    project.run()
    assert project.measured == [
        "none len1024 c1",
        "none len1024 c4",
        "mtp k3 len1024 c1",
        "mtp k3 len1024 c4",
    ]
    manifest = json.loads((project.evidence("mtp", 3, 1) / "manifest.json").read_text())
    assert manifest["identity"]["gate"] is False
    assert manifest["server"]["gate"] is None

    project.save(gate=True)
    project.run(status=1)
    assert project.starts == []
    assert mtp(project, 1) == ("failed", "infeasible", "gate"), "the gated measurement is still in the store"


def test_a_server_that_dies_at_the_gate_is_told_by_its_log(project):
    cause = "RuntimeError: the kernel lost its way"
    project.faults(
        {"kind": "die_at_request", "method": "mtp", "from_request": 2, "cause": cause, "exit_code": 0}
    )
    project.run(status=1)
    row = project.cell("mtp", 1)
    assert (row["status"], row["failure_phase"]) == ("failed", "gate")
    assert row["failure_root_line"].endswith(cause)
    project.faults()
    project.run()
    assert project.measured == ["mtp k3 len1024 c1", "mtp k3 len1024 c4"]


def test_the_answers_of_a_sane_server_are_kept(project):
    project.run("--config", "concurrency=[1]")
    manifest = json.loads((project.evidence("none", 0, 1) / "manifest.json").read_text())
    answers = manifest["server"]["gate"]
    assert len(answers) == 3
    assert all(len(answer.split()) > 3 for answer in answers.values())
