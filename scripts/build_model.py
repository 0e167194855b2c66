"""Rule build_model: a small model or head that the workflow makes itself. Run as `python -m scripts.build_model`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.lib.provision.command import provide
from scripts.lib.provision.model_build import build_model

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--artifact", required=True, help="its name")
    parser.add_argument("--engine", type=Path, required=True, help="the engine environment to build with")
    parser.add_argument("--models", type=Path, required=True, help="the folder of all artifacts")
    parser.add_argument("--log", type=Path, required=True)
    args = parser.parse_args()
    return provide(lambda: build_model(args.artifact, args.engine, args.models, ROOT, args.log), args.log)


if __name__ == "__main__":
    sys.exit(main())
