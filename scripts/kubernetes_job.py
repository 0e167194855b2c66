"""Submit a job script as a Kubernetes Job, or ask what became of one. Run by profiles/kubernetes as `python -m scripts.kubernetes_job`."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

from scripts.lib.kubernetes_job import Pod, manifest, state


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    submit = commands.add_parser("submit", help="print the Job's name")
    for name in ("image", "claim", "mount", "secret"):
        submit.add_argument(f"--{name}", required=True)
    submit.add_argument("--node-selector", default="")
    for name in ("gpus", "cpus", "memory-mb", "minutes"):
        submit.add_argument(f"--{name}", required=True, type=int)
    submit.add_argument("script")
    status = commands.add_parser("status", help="print success, failed or running")
    status.add_argument("job")
    options = vars(parser.parse_args())
    if options.pop("command") == "status":
        return tell(options["job"])
    script = options.pop("script")
    job = json.dumps(manifest(Pod(**options), os.path.abspath(script), os.getcwd()))
    made = subprocess.run(
        ["kubectl", "create", "-f", "-", "-o", "name"], input=job, stdout=subprocess.PIPE, text=True
    )
    print(made.stdout.strip().rpartition("/")[2])
    return made.returncode


def tell(job: str) -> int:
    answer = subprocess.run(["kubectl", "get", "job", job, "-o", "json"], capture_output=True, text=True)
    if answer.returncode == 0:
        print(state(json.loads(answer.stdout)))
    else:
        # A Job that somebody deleted is lost; whatever else went wrong may pass.
        print("failed" if "NotFound" in answer.stderr else "running")
    return 0


if __name__ == "__main__":
    sys.exit(main())
