"""Read server logs without a server: what they say, why the server failed, what to do about it.

    python -m scripts.parse_log FILE... [--json]

FILE is a log of vLLM or SGLang, plain or gzip, or - for standard input. Several logs are shown side by side.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import BinaryIO

from scripts.lib.logs import LogReport, find_failure, parse_stream
from scripts.lib.logs.as_json import json_parts
from scripts.lib.logs.render import render_report
from scripts.lib.logs.render_table import render_table
from scripts.lib.logs.root_cause import ENDED

SNIFF_BYTES = 8192


class BadInput(Exception):
    """An input that cannot be read as a log; the text names it and the remedy."""


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0, or 2 if an input was bad."""
    options = _options(arguments)
    reports: list[tuple[str, LogReport]] = []
    status = 0
    for name in options.files:
        try:
            report = _checked("standard input", sys.stdin.buffer) if name == "-" else _file_report(Path(name))
        except BadInput as problem:
            print(f"parse_log: {problem}", file=sys.stderr)
            status = 2
            continue
        if options.exit_status is not None or options.ended != "unknown":
            report.failure = find_failure(report, options.exit_status, options.ended)
        reports.append(("stdin" if name == "-" else name, report))
    try:
        _show(reports, options.json)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.parse_log", description=__doc__.partition("\n")[0]
    )
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="log of vLLM or SGLang, plain or gzip; - reads standard input",
    )
    parser.add_argument(
        "--json", action="store_true", help="print JSON: an object for one log, a list for several"
    )
    parser.add_argument(
        "--exit-status", type=int, help="how the process ended (-9 or 137 for a kill), if known"
    )
    parser.add_argument(
        "--ended", choices=ENDED, default="unknown", help="what is known about the server's end"
    )
    return parser.parse_args(arguments)


def _file_report(path: Path) -> LogReport:
    if path.is_dir():
        raise BadInput(f"{path} is a directory: name the log file in it")
    try:
        with path.open("rb") as stream:
            return _checked(str(path), stream)
    except FileNotFoundError:
        raise BadInput(f"{path} does not exist: check the path") from None
    except OSError as error:
        raise BadInput(
            f"{path} cannot be read ({error.strerror or error}): check the file and its permissions"
        ) from None


def _checked(name: str, stream: BinaryIO) -> LogReport:
    """A report that says something. Raises BadInput for nothing, and for bytes that are no text."""
    watched = _Watched(stream)
    report = parse_stream(watched)
    if not watched.head:
        raise BadInput(f"{name} is empty: the server wrote nothing, or to another file (start it with 2>&1)")
    if report.size_bytes == 0:
        raise BadInput(
            f"{name} holds no data{f' ({report.note})' if report.note else ''}: check how it was written"
        )
    packed = watched.head.startswith(b"\x1f\x8b")
    if not packed and b"\0" in watched.head and report.engine is None and report.failure is None:
        raise BadInput(f"{name} is binary, not a log: name the server's text log")
    return report


class _Watched:
    """A stream that remembers how it began."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream, self.head = stream, b""

    def read(self, size: int = -1) -> bytes:
        data = self.stream.read(size)
        self.head += data[: max(0, SNIFF_BYTES - len(self.head))]
        return data


def _show(reports: list[tuple[str, LogReport]], as_json: bool) -> None:
    if as_json:
        _show_json(reports)
    elif len(reports) == 1:
        print(render_report(*reports[0]))
    elif reports:
        print(render_table(reports))


def _show_json(reports: list[tuple[str, LogReport]]) -> None:
    several = len(reports) > 1
    if several:
        sys.stdout.write("[\n")
    for index, (name, report) in enumerate(reports):
        if index:
            sys.stdout.write(",\n")
        for part in json_parts(name, report):
            sys.stdout.write(part)
    if reports:
        sys.stdout.write("\n]\n" if several else "\n")


if __name__ == "__main__":
    sys.exit(main())
