"""Rule build_engine_extra: a package that a method needs, compiled into an engine's environment."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.lib.provision.command import provide
from scripts.lib.provision.engine_extra import build_extra


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--extra", required=True, help="its name; {extra}.json is written to the environment's folder"
    )
    parser.add_argument("--requirements", type=Path, required=True, help="pinned requirement file")
    parser.add_argument("--build-requirements", type=Path, required=True, help="pinned, for compiling only")
    parser.add_argument("--folder", type=Path, required=True, help="the engine's environment")
    parser.add_argument("--log", type=Path, required=True)
    args = parser.parse_args()
    return provide(
        lambda: build_extra(args.extra, args.requirements, args.build_requirements, args.folder, args.log),
        args.log,
    )


if __name__ == "__main__":
    sys.exit(main())
