"""Keep a server under load until standard input closes. Says `busy` once every worker has asked; at the end what came back,
one JSON object a line.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict

from scripts.lib.beside_load import BusyServer, LoadSpec


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=json.loads, help="a LoadSpec as JSON")
    server = BusyServer(LoadSpec(**parser.parse_args().spec))
    server.start()
    print("busy", flush=True)
    sys.stdin.read()
    for answer in server.stop():
        print(json.dumps(asdict(answer)))
    sys.stdout.flush()
    # What is still on its way ends with its connection.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
