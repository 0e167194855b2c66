"""A job script of Snakemake as a Kubernetes Job, for profiles/kubernetes. No secret's value enters it: pods read them from a Secret."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

LABEL = "specdec"


@dataclass(frozen=True)
class Pod:
    """What a pod is made of. `mount` is where the claim lies in the pod, the same path as on the machine that submits;
    `node_selector` is one label as `key=value`, empty for any node; `secret` may be missing in the cluster."""

    image: str
    claim: str
    mount: str
    secret: str
    node_selector: str
    gpus: int
    cpus: int
    memory_mb: int
    minutes: int


def manifest(pod: Pod, script: str, folder: str) -> dict[str, Any]:
    """The Job that runs `script` in `folder`, both below the mount. It is tried once: Snakemake decides about a second try."""
    label, _, value = pod.node_selector.partition("=")
    limits: dict[str, object] = {"memory": f"{pod.memory_mb}M"}
    if pod.gpus:
        limits["nvidia.com/gpu"] = pod.gpus
    container = {
        "name": "job",
        "image": pod.image,
        "command": ["/bin/sh", script],
        "workingDir": folder,
        "envFrom": [{"secretRef": {"name": pod.secret, "optional": True}}],
        "resources": {"requests": {"cpu": pod.cpus, "memory": f"{pod.memory_mb}M"}, "limits": limits},
        "volumeMounts": [
            {"name": "work", "mountPath": pod.mount},
            {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 - ranks of one server talk through it; 64 MB is the default
        ],
    }
    template = {
        "restartPolicy": "Never",
        "nodeSelector": {label: value} if label else {},
        "containers": [container],
        "volumes": [
            {"name": "work", "persistentVolumeClaim": {"claimName": pod.claim}},
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
        ],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": f"{LABEL}-", "labels": {"app": LABEL}},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": pod.minutes * 60,
            "template": {"metadata": {"labels": {"app": LABEL}}, "spec": template},
        },
    }


def state(job: dict[str, Any]) -> str:
    """`success`, `failed` or `running`, as Snakemake's generic executor wants it, of a Job as kubectl shows it."""
    status = job.get("status", {})
    if status.get("succeeded"):
        return "success"
    conditions = {entry["type"] for entry in status.get("conditions", ()) if entry.get("status") == "True"}
    return "failed" if status.get("failed") or "Failed" in conditions else "running"
