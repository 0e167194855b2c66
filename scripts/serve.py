"""Serve one boot of a server until Snakemake ends this job.

Run as `exec python -m scripts.serve`, so that the SIGTERM arrives here and not at a shell around it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.lib.jobs import run_job
from scripts.lib.launch import Launch
from scripts.lib.serving import Supervisor

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--launch", required=True, type=Path, help="file with the launch as JSON")
    parser.add_argument("--boot", required=True, help="the boot's path")
    parser.add_argument("--label", required=True, help="the server's name on the console")
    parser.add_argument(
        "--cells", required=True, type=int, help="how many cells will be measured on this boot"
    )
    parser.add_argument(
        "--endpoint", required=True, type=Path, help="where to tell the cells about the server"
    )
    parser.add_argument("--log", required=True, type=Path, help="the server's log")
    parser.add_argument("--parent", required=True, type=int, help="process that this one ends with")
    args = parser.parse_args()
    args.log.parent.mkdir(parents=True, exist_ok=True)
    args.endpoint.parent.mkdir(parents=True, exist_ok=True)
    launch = Launch.from_json(args.launch.read_text(encoding="utf-8"))
    supervisor = Supervisor(
        launch, args.boot, args.label, args.cells, args.endpoint, args.log, ROOT, args.parent
    )
    return run_job(supervisor.run, args.log.with_name("serve-error.log"))


if __name__ == "__main__":
    sys.exit(main())
