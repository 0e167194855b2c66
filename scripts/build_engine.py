"""Rule build_engine: an engine's environment from its requirement file. Run as `python -m scripts.build_engine`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.lib.provision.command import provide
from scripts.lib.provision.engine_env import build_engine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requirements", type=Path, required=True, help="pinned requirement file")
    parser.add_argument(
        "--folder", type=Path, required=True, help="where the environment goes; gets ready.json"
    )
    parser.add_argument("--log", type=Path, required=True)
    args = parser.parse_args()
    return provide(lambda: build_engine(args.requirements, args.folder, args.log), args.log)


if __name__ == "__main__":
    sys.exit(main())
