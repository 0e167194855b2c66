"""`python tests/fake_server ...` and `python -m tests.fake_server ...` are the same server."""

from __future__ import annotations

import sys
from pathlib import Path

if __package__:
    from .server import main
else:
    # Run by path, Python puts this very directory on sys.path, where relative imports do not work.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from fake_server.server import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
