from __future__ import annotations

import pytest

from scripts.lib.kubernetes_job import Pod, manifest, state

POD = {
    "image": "registry.example/specdec:1",
    "claim": "work",
    "mount": "/work",
    "secret": "tokens",
    "node_selector": "gpu.product=H100",
    "gpus": 2,
    "cpus": 8,
    "memory_mb": 64000,
    "minutes": 31,
}


def test_a_pod_has_the_gpus_the_node_the_files_and_the_time_of_its_server():
    job = manifest(Pod(**POD), "/work/run/jobscript.sh", "/work/run")
    assert job["spec"]["backoffLimit"] == 0
    assert job["spec"]["activeDeadlineSeconds"] == 31 * 60
    pod = job["spec"]["template"]["spec"]
    assert pod["restartPolicy"] == "Never"
    assert pod["nodeSelector"] == {"gpu.product": "H100"}
    assert pod["volumes"][0] == {"name": "work", "persistentVolumeClaim": {"claimName": "work"}}
    (container,) = pod["containers"]
    assert container["command"] == ["/bin/sh", "/work/run/jobscript.sh"]
    assert container["workingDir"] == "/work/run"
    assert container["volumeMounts"][0] == {"name": "work", "mountPath": "/work"}
    assert container["resources"] == {
        "requests": {"cpu": 8, "memory": "64000M"},
        "limits": {"memory": "64000M", "nvidia.com/gpu": 2},
    }
    assert container["envFrom"] == [{"secretRef": {"name": "tokens", "optional": True}}]


def test_a_pod_without_gpu_goes_to_any_node_and_asks_for_none():
    job = manifest(Pod(**POD | {"gpus": 0, "node_selector": ""}), "/work/x.sh", "/work")
    pod = job["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {}
    assert "nvidia.com/gpu" not in pod["containers"][0]["resources"]["limits"]


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ({}, "running"),
        ({"active": 1}, "running"),
        ({"succeeded": 1}, "success"),
        ({"failed": 1}, "failed"),
        ({"conditions": [{"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}]}, "failed"),
        ({"conditions": [{"type": "Failed", "status": "False"}]}, "running"),
    ],
)
def test_what_became_of_a_job(status, word):
    assert state({"status": status}) == word
