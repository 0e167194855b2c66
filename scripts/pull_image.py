"""Rule pull_image: an engine's container image as a file for apptainer. Run as `python -m scripts.pull_image`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.lib.provision.command import provide
from scripts.lib.provision.image import pull_image


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--image", required=True, help="where it comes from, e.g. docker://owner/name:tag")
    parser.add_argument("--folder", type=Path, required=True, help="where it goes; gets ready.json")
    parser.add_argument("--log", type=Path, required=True)
    args = parser.parse_args()
    return provide(lambda: pull_image(args.image, args.folder, args.log), args.log)


if __name__ == "__main__":
    sys.exit(main())
