"""Fill a folder with one artifact. The engine's Python runs this as a module.

Standard output has `STATUS text` while it works and `FACTS json` at the end.
"""

from __future__ import annotations

import argparse
import importlib
import json
from pathlib import Path

from scripts.lib.provision.artifacts import artifact_named


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--models", type=Path, required=True, help="the folder of all artifacts")
    parser.add_argument("--out", type=Path, required=True, help="the folder to fill")
    args = parser.parse_args()
    module = importlib.import_module(f"scripts.lib.provision.{artifact_named(args.name).module}")
    facts = module.build(args.models, args.out, lambda text: print(f"STATUS {text}", flush=True))
    print("FACTS", json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
